//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A log that is full or closed, on a full disk, or whose reader has ended, stops neither the start, nor answers, refreshes or the end.
// SIGHUP ends nothing.
func TestLogIsNotRead(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(reader, log *os.File) error{
		"reader has ended": func(reader, _ *os.File) error { return reader.Close() },
		"disk is full":     nil,
		"closed":           nil,
		"full": func(_, log *os.File) error {
			raw, err := log.SyscallConn()
			if err != nil {
				return err
			}
			return raw.Write(func(fd uintptr) bool {
				for err == nil {
					_, err = syscall.Write(int(fd), make([]byte, 4096))
				}
				return true
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader, log, err := os.Pipe()
			if err == nil && prepare != nil {
				err = prepare(reader, log)
			}
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			defer log.Close()
			address, admin, folder := freeAddress(t), freeAddress(t), t.TempDir()
			if err := os.Mkdir(filepath.Join(folder, "options"), 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := command(t, "serve", "--listen", address, "--admin-listen", admin, "--source", "folder", "--folder", folder)
			cmd.Stderr = log
			if redirect := map[string]string{"disk is full": "2>/dev/full", "closed": "2>&-"}[name]; redirect != "" {
				cmd.Path, cmd.Args = "/bin/sh", append([]string{"sh", "-c", `exec "$0" "$@" ` + redirect}, cmd.Args...)
			}
			p := launch(t, cmd)
			t.Cleanup(p.kill)
			p.url, p.admin = "http://"+address, "http://"+admin
			p.until("it answers", func() bool {
				_, _, err := fetch("GET", p.url+"/healthz")
				return err == nil || p.hasEnded()
			})
			p.signal(syscall.SIGHUP)
			refused := func() string {
				return metric(p.operator("/metrics"), `strikecache_refreshes_total{code="upstream_malformed",feed="spx"}`)
			}
			for n := range 3 { // each has a line in the log
				before := refused()
				if err := os.Rename(writeFile(t, filepath.Join(folder, "new"), strings.Repeat("{", n+1)), filepath.Join(folder, "options", "_SPX.json")); err != nil {
					t.Fatal(err)
				}
				p.until("a refresh", func() bool { return refused() != before })
			}
			_, body := p.get("/readyz")
			lost := metric(p.operator("/metrics"), "strikecache_log_lines_lost_total")
			if fails := name == "reader has ended" || name == "disk is full"; strings.Contains(string(body), `"degraded":["log"]`) != fails || (lost != "0") != fails {
				t.Errorf("%s lines lost, %s", lost, body)
			}
			p.stop()
		})
	}
}
