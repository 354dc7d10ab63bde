package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a server that this run started, and will end.
type process struct {
	cmd *exec.Cmd
	log *logBuffer
	end chan struct{} // closed when it has ended
	err error         // after end
}

// logBuffer keeps what a server says.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs a command on one core and waits until its address accepts connections. Go programs find one core and
// take GOMAXPROCS=1 from it.
func start(ctx context.Context, core int, address string, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), log: &logBuffer{}, end: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt reaches it through stop, after the last reading
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STRIKECACHE_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	if err := startOn(core, p.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() { p.err = p.cmd.Wait(); close(p.end) }()
	for deadline := time.Now().Add(20 * time.Second); ; {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return p, conn.Close()
		}
		select {
		case <-p.end:
			return nil, fmt.Errorf("%s ended: %w\n%s", name, p.err, p.log)
		case <-ctx.Done():
			p.stop()
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			p.stop()
			return nil, fmt.Errorf("%s does not listen on %s\n%s", name, address, p.log)
		}
	}
}

// startOn starts a command whose threads may run on one core only: a child has the affinity of the thread that
// starts it.
func startOn(core int, cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		return err
	}
	var one unix.CPUSet
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("core %d: %w", core, err)
	}
	return errors.Join(cmd.Start(), unix.SchedSetaffinity(0, &mine))
}

// stayOn keeps every thread of this process on one core.
func stayOn(core int) error {
	var one unix.CPUSet
	one.Set(core)
	tasks, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		return err
	}
	for _, t := range tasks {
		id, err := strconv.Atoi(filepath.Base(t))
		if err != nil {
			return err
		}
		if err := unix.SchedSetaffinity(id, &one); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("core %d: %w", core, err)
		}
	}
	return nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// stop asks the process to end, and after five seconds ends it with all that it started.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.end:
	case <-time.After(5 * time.Second):
		_ = syscall.Kill(-p.pid(), syscall.SIGKILL)
		<-p.end
	}
}

// freeAddress is one that nobody listens on now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
