package keys

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

var digestA, digestB = digestOf("a"), digestOf("b")

// record returns a record of the key file with further members.
func record(digest, more string) string {
	return fmt.Sprintf(`{"id":%q,"name":"a name","sha256":%q,"created":"2026-01-02T03:04:05Z"%s}`, publicID(digest), digest, more)
}

const limitsOf = `,"per_minute":1,"per_day":2`

func file(records ...string) string {
	return `{"format":1,"keys":[` + strings.Join(records, ",") + `]}`
}

func TestDecode(t *testing.T) {
	keys, err := decode([]byte(file(
		record(digestA, limitsOf),
		record(digestB, `,"per_minute":0,"per_day":0,"expires":"2027-01-01T01:00:00+01:00","revoked":"2026-06-01T00:00:00Z"`))))
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := []Key{
		{ID: publicID(digestA), Name: "a name", SHA256: digestA, Created: created, PerMinute: 1, PerDay: 2},
		{
			ID: publicID(digestB), Name: "a name", SHA256: digestB, Created: created,
			Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), Revoked: time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
		},
	}
	if err != nil || !reflect.DeepEqual(keys, want) {
		t.Errorf("%#v %v", keys, err)
	}
	if keys, err := decode([]byte(file())); err != nil || len(keys) != 0 {
		t.Errorf("empty: %v %v", keys, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := record(digestA, limitsOf)
	change := func(old, new string) string { return file(strings.Replace(good, old, new, 1)) }
	for text, want := range map[string]string{
		"":                              "the JSON ends too early",
		"null":                          "format is 0",
		"[]":                            "there is a JSON array where an object must be",
		"{}":                            "format is 0, this version reads 1",
		`{"format":2,"keys":[]}`:        "format is 2, this version reads 1",
		`{"format":"1","keys":[]}`:      "format must not be a JSON string",
		`{"format":1}`:                  "keys is missing",
		`{"format":1,"keys":{}}`:        "keys must not be a JSON object",
		`{"format":1,"keys":[],"x":1}`:  `unknown field "x"`,
		`{"format":1,"Keys":[]}`:        `unknown field "Keys"`,
		`{"format":1,"Keyſ":[]}`:        `unknown field`,
		`{"format":1,"format":1}`:       `member "format" is there twice`,
		file(good) + "{}":               "after the end",
		file(good)[:150]:                "the JSON ends too early",
		file(good, record(digestA, "")): "key 2, named \"a name\": per_minute and per_day must both be there",
		file(good, good):                "id " + publicID(digestA) + " is that of key 1 too",
		file("1"):                       "key 1, named \"\": there is a JSON number where an object must be",
		file("null"):                    "key 1",
		change(`"a name"`, `"`+strings.Repeat("x", 65)+`"`):                      "the name must have 1 to 64",
		change(`"a name"`, `"a\u0000"`):                                          "printable",
		change(`"a name"`, `7`):                                                  "name must not be a JSON number",
		change(`"a name"`, `{"a":[]}`):                                           "JSON inside a member",
		change(`"name"`, `"nom"`):                                                `key 1, named "": unknown field "nom"`,
		change(`"name":`, `"id":"","name":`):                                     `member "id" is there twice`,
		change(digestA, digestA[:62]+"zz"):                                       "sha256 is not 64 lower-case hexadecimal digits",
		change(digestA, digestA[:62]):                                            "sha256 is not 64",
		change(digestA, strings.ToUpper(digestA)):                                "sha256 is not 64",
		change(publicID(digestA), "k_0"):                                         "id is not " + publicID(digestA),
		change(`"2026-01-02T03:04:05Z"`, `"yesterday"`):                          "a time is not RFC 3339",
		change(`"2026-01-02T03:04:05Z"`, `5`):                                    "a time is not RFC 3339",
		change(`"2026-01-02T03:04:05Z"`, `null`):                                 "created must lie in",
		change(`"2026-01-02T03:04:05Z"`, `"1026-01-02T03:04:05Z"`):               "created must lie in",
		change(`"per_minute":1`, `"per_minute":-1`):                              "requests a minute, not -1",
		change(`"per_minute":1`, `"per_minute":1000001`):                         "to 1000000 requests a minute",
		change(`"per_minute":1`, `"per_minute":1.5`):                             "per_minute must not be a JSON number 1.5",
		change(`"per_minute":1`, `"per_minute":null`):                            "must both be there",
		change(`"per_day":2`, `"per_day":-2`):                                    "requests a day, not -2",
		change(`"per_day":2`, `"per_day":1e99`):                                  "per_day must not be",
		change(`"per_day":2`, `"per_day":2,"expires":"9999-01-01T00:00:00Z"`):    "the expiry must lie in",
		change(`"per_day":2`, `"per_day":2,"revoked":"0002-01-01T00:00:00Z"`):    "revoked must lie in",
		strings.Repeat("[", 100_000):                                             "JSON inside",
		strings.Repeat(" ", maxFile+1):                                           "over 4194304 bytes",
		file(strings.Split(strings.Repeat("0 ", MaxKeys+1), " ")[:MaxKeys+1]...): "10001 keys, at most 10000",
	} {
		_, err := decode([]byte(text))
		wantError(t, fmt.Sprintf("%.90s", text), err, want)
		if err != nil && strings.Contains(err.Error(), digestA) {
			t.Errorf("the error quotes a digest: %v", err)
		}
	}
}
