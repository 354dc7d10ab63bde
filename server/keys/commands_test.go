package keys

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The bubble's clock begins at the start of the year 2000.
func TestCommands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := &Commands{DataDir: filepath.Dir(keyPath(t))}
		var out, terms bytes.Buffer
		to := Streams{&out, &terms}
		run := func(command interface {
			Run(*Commands, Streams) error
		}) string {
			t.Helper()
			out.Reset()
			must(t, command.Run(all, to))
			return out.String()
		}
		secret := strings.TrimSuffix(run(createCommand{Name: "dash board", PerMinute: 600, ExpiresIn: 30 * 24 * time.Hour}), "\n")
		one := publicID(digestOf(secret))
		if strings.ContainsAny(secret, " \n") || terms.String() != "created "+one+` "dash board" (a minute: 600, a day: unlimited, expires: 2000-01-31T00:00:00Z) in `+File(all.DataDir)+
			"; the line above is its secret, which is shown once and stored nowhere\n" {
			t.Errorf("%s%s", out.String(), terms.String())
		}
		two := publicID(digestOf(strings.TrimSuffix(run(createCommand{Name: "b", PerDay: 5}), "\n")))
		time.Sleep(time.Hour)
		for at, source := range []string{"cboe", "simulated"} { // two servers
			must(t, os.Mkdir(filepath.Join(all.DataDir, source), 0o700))
			write(t, filepath.Join(all.DataDir, source, "usage.json"), fmt.Sprintf(`{"day":"2000-01-01","requests":{"%s":%d},"last_use":{"%[1]s":%[3]d}}`, one, 4+at, 946684800+60*at))
		}
		equal(t, run(revokeCommand{"b"}), "revoked "+two+` "b" (a minute: unlimited, a day: 5, expires: never)`+"\n", "revoke")
		if got := run(listCommand{}); got != strings.NewReplacer("ID1", one, "ID2", two).Replace(
			`ID              NAME        CREATED               EXPIRES               PER MINUTE  PER DAY    TODAY  LAST USE              STATE
ID1  dash board  2000-01-01T00:00:00Z  2000-01-31T00:00:00Z  600         unlimited  9      2000-01-01T00:01:00Z  active
ID2  b           2000-01-01T00:00:00Z  never                 unlimited   5          0      never                 revoked
`) {
			t.Error(got)
		}
		time.Sleep(30 * 24 * time.Hour)
		if got := run(listCommand{}); !strings.Contains(got, "600         unlimited  0      2000-01-01T00:01:00Z  expired\n") || strings.Contains(got, digestOf(secret)) || strings.Contains(got, secret) {
			t.Error(got)
		}
	})
}
