package keys

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var digestA, digestB = digestOf("a"), digestOf("b")

// recordText returns a record of the key file with further members.
func recordText(digest, more string) string {
	return fmt.Sprintf(`{"id":%q,"name":"a name","sha256":%q,"created":"2026-01-02T03:04:05Z"%s}`, publicID(digest), digest, more)
}

const limitsOf = `,"per_minute":1,"per_day":2`

func file(records ...string) string {
	return `{"format":1,"keys":[` + strings.Join(records, ",") + `]}`
}

func TestDecode(t *testing.T) {
	keys, err := decode([]byte(file(
		recordText(digestA, limitsOf),
		recordText(digestB, `,"per_minute":0,"per_day":0,"expires":"2027-01-01T01:00:00+01:00","revoked":"2026-06-01T00:00:00Z"`))))
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
	good := recordText(digestA, limitsOf)
	change := func(old, new string) string { return file(strings.Replace(good, old, new, 1)) }
	for text, want := range map[string]string{
		"":                             "unexpected end of JSON input",
		"null":                         "format is 0",
		"[]":                           "cannot unmarshal array",
		"{}":                           "format is 0, this version reads 1",
		`{"format":2,"keys":[]}`:       "format is 2, this version reads 1",
		`{"format":"1","keys":[]}`:     "cannot unmarshal string",
		`{"format":1}`:                 "keys is missing",
		`{"format":1,"keys":{}}`:       "cannot unmarshal object",
		`{"format":1,"keys":[],"x":1}`: `unknown field "x"`,
		file(good) + "{}":              "after top-level value",
		file(good)[:150]:               "unexpected end of JSON input",
		file(good, recordText(digestB, limitsOf)): `key 2, named "a name": key ` + publicID(digestA) + ` has the name "a name"`,
		file(good, recordText(digestA, "")):       "key 2, named \"a name\": per_minute and per_day must both be there",
		file(good, good):                          "an earlier key has the id " + publicID(digestA) + " too",
		file("1"):                                 "cannot unmarshal number",
		file("null"):                              "key 1",
		change(`"a name"`, `"`+strings.Repeat("x", 65)+`"`): "the name must have 1 to 64",
		change(`"a name"`, `""`):                            "the name must have 1 to 64 characters",
		change(`"a name"`, `"a\u0000"`):                     "printable",
		change(`"a name"`, `"a\u202eb"`):                    "printable characters only",
		change(`"a name"`, `"sk_abc"`):                      "must not begin with sk_",
		change(`"a name"`, `7`):                             "cannot unmarshal number",
		change(`"a name"`, `{"a":[]}`):                      "cannot unmarshal object",
		change(`"name"`, `"nom"`):                           `unknown field "nom"`,
		change(digestA, digestA[:62]+"zz"):                  "sha256 is not 64 lower-case hexadecimal digits",
		change(digestA, digestA[:62]):                       "sha256 is not 64",
		change(digestA, strings.ToUpper(digestA)):           "sha256 is not 64",
		change(publicID(digestA), "k_0"):                    "id is not " + publicID(digestA),
		change(`"2026-01-02T03:04:05Z"`, `"yesterday"`):     "ime",
		change(`"2026-01-02T03:04:05Z"`, `5`):               "ime",
		change(`"2026-01-02T03:04:05Z"`, `null`):            "created is missing",
		change(`"per_minute":1`, `"per_minute":-1`):         "requests a minute, not -1",
		change(`"per_minute":1`, `"per_minute":1000001`):    "to 1000000 requests a minute",
		change(`"per_minute":1`, `"per_minute":1.5`):        "cannot unmarshal number 1.5 into Go struct field",
		change(`"per_minute":1`, `"per_minute":null`):       "must both be there",
		change(`"per_day":2`, `"per_day":-2`):               "requests a day, not -2",
		change(`"per_day":2`, `"per_day":1000000001`):       "0 (unlimited) to 1000000000 requests a day",
		change(`"per_day":2`, `"per_day":1e99`):             "cannot unmarshal number 1e99",
		strings.Repeat("[", 100_000):                        "exceeded max depth",
		file(slices.Repeat([]string{"null"}, MaxKeys+1)...): "10001 keys, at most 10000",
	} {
		_, err := decode([]byte(text))
		wantError(t, fmt.Sprintf("%.90s", text), err, want)
	}
}
