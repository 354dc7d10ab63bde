package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestCommands(t *testing.T) {
	path := keyPath(t)
	var stdout, stderr, list bytes.Buffer
	dashboard := createCommand{Name: "dash board", PerMinute: 600, ExpiresIn: 30 * 24 * time.Hour}
	if err := dashboard.run(path, Streams{&stdout, &stderr}, now); err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSuffix(stdout.String(), "\n")
	id := publicID(digestOf(secret))
	if strings.ContainsAny(secret, " \n") || stderr.String() != "created "+id+` "dash board" (a minute: 600, a day: unlimited, expires: 2026-12-21T12:00:00Z); `+
		"the line above is its secret, which is shown this once and stored nowhere\n" {
		t.Errorf("%s%s", stdout.String(), stderr.String())
	}
	_, second := create(t, path, Spec{Name: "b", PerDay: 5})
	stdout.Reset()
	if err := (revokeCommand{"b"}).run(path, Streams{Out: &stdout}, now.Add(time.Hour)); err != nil || stdout.String() != "revoked "+second.ID+` "b" (a minute: unlimited, a day: 5, expires: never)`+"\n" {
		t.Errorf("%s %v", stdout.String(), err)
	}
	if err := (listCommand{}).run(path, Streams{Out: &list}, now); err != nil || list.String() != strings.NewReplacer("ID1", id, "ID2", second.ID).Replace(
		`ID              NAME        CREATED               EXPIRES               PER MINUTE  PER DAY    STATE
ID1  dash board  2026-11-21T12:00:00Z  2026-12-21T12:00:00Z  600         unlimited  active
ID2  b           2026-11-21T12:00:00Z  never                 unlimited   5          revoked
`) {
		t.Errorf("%v\n%s", err, list.String())
	}
	list.Reset()
	if err := (listCommand{JSON: true}).run(path, Streams{Out: &list}, now.AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	if err := json.Unmarshal(list.Bytes(), &rows); err != nil || len(rows) != 2 || rows[0]["state"] != "expired" || rows[1]["revoked"] != "2026-11-21T13:00:00Z" || rows[1]["expires"] != nil || len(rows[0]) != 7 {
		t.Errorf("%v\n%s", err, list.String())
	}
	if strings.Contains(list.String(), second.SHA256) || strings.Contains(list.String(), secret) {
		t.Error("the list shows a digest or a secret")
	}
}

type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("closed") }

// If the secret cannot be printed, its key is revoked.
func TestCreateCommandWithoutOutput(t *testing.T) {
	path := keyPath(t)
	wantError(t, "create", (createCommand{Name: "a"}).run(path, Streams{closed{}, closed{}}, now), "which is now revoked")
	if keys, err := List(path); err != nil || len(keys) != 1 || keys[0].State(now) != "revoked" {
		t.Errorf("%v %v", keys, err)
	}
}

func TestCommandErrors(t *testing.T) {
	path := keyPath(t)
	var out bytes.Buffer
	to := Streams{&out, &out}
	wantError(t, "list", (listCommand{}).run(path, to, now), "list keys: key file missing: "+path, "strikecache keys create NAME")
	wantError(t, "revoke", (revokeCommand{"a"}).run(path, to, now), "revoke key: key file missing: "+path, "strikecache keys create NAME")
	wantError(t, "create", (createCommand{}).run(path, to, now), "create key: the name must have")
	if out.Len() > 0 {
		t.Errorf("printed %s", out.String())
	}
}
