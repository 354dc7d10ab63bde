package e2e

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// dial opens a connection on which no operation hangs for long.
func (p *process) dial() net.Conn {
	p.t.Helper()
	c, err := net.Dial("tcp", p.address())
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	return c
}

func (p *process) write(c net.Conn, raw string) {
	p.t.Helper()
	if _, err := io.WriteString(c, raw); err != nil {
		p.t.Fatal(err)
	}
}

// asking is a request, and stuck many for big bodies, more than the kernel buffers between both ends.
const asking = "GET " + vixPath + " HTTP/1.1\r\nHost: a\r\n\r\n"

var stuck = strings.Repeat("GET "+gammaPath+" HTTP/1.1\r\nHost: a\r\n\r\n", 150)

// readAnswers reads whole answers until the server ends the connection, checks the bodies of those with status 200, and
// returns their statuses and whether the last said that it was. A cut answer is an error.
func readAnswers(c io.Reader, want []byte) (statuses []int, announced bool, err error) {
	r := bufio.NewReader(c)
	for {
		if _, err := r.Peek(1); errors.Is(err, io.EOF) {
			return statuses, announced, nil
		}
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return statuses, announced, err
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return statuses, announced, err
		}
		if resp.StatusCode == http.StatusOK && !bytes.Equal(body, want) {
			return statuses, announced, errors.New("another body")
		}
		statuses, announced = append(statuses, resp.StatusCode), resp.Close
	}
}

// slowly is a reader that takes its time.
type slowly struct{ io.Reader }

func (s slowly) Read(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return s.Reader.Read(p[:min(len(p), 64<<10)])
}

// A server that is told to stop answers every request in flight in full, takes no further connection, waits for no
// idle one, and ends well within the limit.
func TestFaultDrain(t *testing.T) {
	t.Parallel()
	p := serveStored(t)
	p.ready()
	_, small := p.get(vixPath)
	_, big := p.get(gammaPath)
	clients := count(200)

	var working sync.WaitGroup
	var answered, announcedLast atomic.Int64
	for range clients { // clients that ask all the time
		c := p.dial()
		working.Go(func() {
			r := bufio.NewReader(c)
			for {
				if _, err := io.WriteString(c, asking); err != nil {
					t.Errorf("asking: %v", err)
					return
				}
				resp, err := http.ReadResponse(r, nil)
				if err != nil {
					t.Errorf("a request was not answered: %v", err)
					return
				}
				body, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != http.StatusOK || !bytes.Equal(body, small) {
					t.Errorf("%d %.100q %v", resp.StatusCode, body, err)
					return
				}
				answered.Add(1)
				if resp.Close {
					announcedLast.Add(1)
					return
				}
			}
		})
	}
	readers, halves, idle := make([]net.Conn, clients/10), make([]net.Conn, clients/10), p.crowd(clients)
	for i := range readers { // a reader whose answer is under way
		readers[i], halves[i] = p.dial(), p.dial()
		p.write(readers[i], stuck)
	}
	lost := p.dial()
	if full() { // and one that never comes, which takes 5 seconds
		p.write(lost, asking[:20])
	}
	p.until("many answers", func() bool { return answered.Load() > int64(20*clients) })
	for _, c := range halves { // a head may take 5 seconds in all
		p.write(c, asking[:20])
	}
	written := answered.Load()
	p.until("the halves are read", func() bool { return answered.Load() > written+int64(10*clients) })

	began, ended := time.Now(), make(chan error, 1)
	go func() { ended <- p.stop(syscall.SIGTERM) }()
	p.until("the listener is closed", func() bool {
		c, err := net.Dial("tcp", p.address())
		if err == nil {
			c.Close()
		}
		return errors.Is(err, syscall.ECONNREFUSED)
	})
	working.Wait()
	if n := announcedLast.Load(); n != int64(clients) {
		t.Errorf("%d of %d clients got a last answer that said so", n, clients)
	}
	for _, c := range idle {
		if n, err := c.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
			t.Errorf("idle: %d bytes, %v", n, err)
		}
	}
	select {
	case <-ended:
		t.Fatal("the process did not wait for the requests in flight")
	default:
	}
	each(len(halves), len(halves), func(i int) {
		if _, err := io.WriteString(halves[i], asking[20:]); err != nil {
			t.Error(err)
		}
		if statuses, announced, err := readAnswers(halves[i], small); err != nil || len(statuses) != 1 || statuses[0] != 200 || !announced {
			t.Errorf("half head: %v, %v", statuses, err)
		}
	})
	var whole atomic.Int64
	each(len(readers), len(readers), func(i int) {
		statuses, announced, err := readAnswers(slowly{readers[i]}, big)
		if err != nil || len(statuses) == 0 || len(statuses) == 150 || !announced {
			t.Errorf("slow reader: %d answers, %v, last announced: %v", len(statuses), err, announced)
		}
		whole.Add(int64(len(statuses)))
	})
	if statuses, _, err := readAnswers(lost, nil); err != nil || full() != slices.Equal(statuses, []int{408}) {
		t.Errorf("lost head: %v, %v", statuses, err)
	}
	if err := <-ended; err != nil {
		t.Errorf("ended with %v: %s", err, p.logged())
	}
	figure(t, "%d clients asking, %d slow readers, %d half heads, %d idle at SIGTERM: no answer lost of %d and %d, ended after %.1f s",
		clients, len(readers), len(halves), len(idle), answered.Load(), whole.Load(), time.Since(began).Seconds())
}

// stuckAtStop serves a client that never reads, and tells the server to stop.
func stuckAtStop(t *testing.T) *process {
	p := serveStored(t)
	p.ready()
	c := p.dial()
	p.write(c, stuck)
	if _, err := io.ReadFull(c, make([]byte, 100)); err != nil { // it is being answered
		t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	p.until("stopping", func() bool { return strings.Contains(p.logged(), "msg=stopping") })
	return p
}

// A client that never takes its answer holds the server no longer than the limit.
func TestFaultDrainLimit(t *testing.T) {
	t.Parallel()
	if !full() {
		t.Skip("needs a full run: the limit is 10 seconds")
	}
	p := stuckAtStop(t)
	began := time.Now()
	err := <-p.end
	p.end <- err
	var exit *exec.ExitError
	if took := time.Since(began); !errors.As(err, &exit) || exit.ExitCode() != 1 || took < 9*time.Second || !strings.Contains(p.logged(), "1 connections cut off") {
		t.Errorf("ended with %v after %v: %s", err, took, p.logged())
	}
	figure(t, "ended %.1f s after SIGTERM with a client that never reads", time.Since(began).Seconds())
}

// The second signal ends the process at once.
func TestSecondSignal(t *testing.T) {
	t.Parallel()
	p := stuckAtStop(t)
	var exit *exec.ExitError
	if err := p.stop(syscall.SIGTERM); !errors.As(err, &exit) || exit.ExitCode() != -1 || strings.Contains(p.logged(), "cut off") {
		t.Errorf("ended with %v: %s", err, p.logged())
	}
}

// slowhttptest holds connections in its ways; all are let go at the timeouts, and its probe is answered every second.
func TestFaultSlowhttptest(t *testing.T) {
	t.Parallel()
	slow := program(t, "slowhttptest")
	connections := strconv.Itoa(count(400))
	p := shared(t)
	modes := map[string]string{
		"slow heads":  "-H -i 1 -l 60",
		"slow bodies": "-B -s 1000 -i 1 -l 60",
	}
	if full() { // these end with the 75 seconds between requests: the kernel has taken the whole answer
		modes["slow readers"] = "-X -k 1 -w 10 -y 20 -n 5 -z 512 -l 150"
	}
	var running sync.WaitGroup
	for name, flags := range modes {
		running.Go(func() {
			prefix := filepath.Join(t.TempDir(), strings.ReplaceAll(name, " ", "-"))
			args := append(strings.Fields(flags), "-c", connections, "-r", connections, "-p", "5", "-u", p.url+gammaPath, "-g", "-o", prefix)
			out, err := exec.Command(slow, args...).CombinedOutput()
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
			if strconv.Itoa(held) != connections {
				t.Errorf("%s: %d of %s were held", name, held, connections)
			}
			figure(t, "slowhttptest, %s: %s connections let go within %d s, the probe answered throughout", name, connections, seconds)
		})
	}
	running.Wait()
}
