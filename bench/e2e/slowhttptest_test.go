package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"strikecache/bench/need"
)

// slowhttptest holds connections in its ways; all are let go at the timeouts, and its probe is answered every second.
func TestFaultSlowhttptest(t *testing.T) {
	program := need.Program(t, "slowhttptest")
	count := strconv.Itoa(need.Count(400))
	p := serve(t, "--data-dir", t.TempDir(), "--sim-speed", "0")
	p.ready()
	modes := map[string]string{
		"slow heads":  "-H -i 1 -l 60",
		"slow bodies": "-B -s 1000 -i 1 -l 60",
	}
	if need.Full() { // these end with the 75 seconds between requests: the kernel has taken the whole answer
		modes["slow readers"] = "-X -k 1 -w 10 -y 20 -n 5 -z 512 -l 150"
	}
	var running sync.WaitGroup
	for name, flags := range modes {
		running.Go(func() {
			prefix := filepath.Join(t.TempDir(), strings.ReplaceAll(name, " ", "-"))
			args := append(strings.Fields(flags), "-c", count, "-r", count, "-p", "5", "-u", p.url+gamma, "-g", "-o", prefix)
			out, err := exec.Command(program, args...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), "No open connections left") {
				t.Errorf("%s: %v %s", name, err, out[max(0, len(out)-500):])
			}
			report, err := os.ReadFile(prefix + ".csv")
			if err != nil {
				t.Error(err)
				return
			}
			seconds, held := 0, 0
			for line := range strings.Lines(string(report)) { // Seconds,Closed,Pending,Connected,Service Available
				cells := strings.Split(strings.TrimSpace(line), ",")
				if len(cells) != 5 || cells[0] == "Seconds" {
					continue
				}
				seconds++
				n, err := strconv.Atoi(cells[3])
				if held = max(held, n); err != nil || cells[4] == "0" {
					t.Errorf("%s: not available: %s", name, line)
				}
			}
			if strconv.Itoa(held) != count {
				t.Errorf("%s: %d of %s were held", name, held, count)
			}
			need.Figure(t, "slowhttptest, %s: %s connections let go within %d s, the probe answered throughout", name, count, seconds)
		})
	}
	running.Wait()
}
