package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// process is a program that this one started.
type process struct {
	cancel context.CancelFunc
	done   chan struct{}
	out    *output
}

// start runs a program until stop, or until ctx ends. It is asked to end first, and killed 15 seconds later;
// varnishd ends its child itself.
func start(ctx context.Context, path string, args ...string) (*process, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = environment()
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 15 * time.Second
	p := &process{cancel, make(chan struct{}), &output{}}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("start %s: %w", filepath.Base(path), err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // whoever waits for an answer sees done and shows the output
	}()
	return p, nil
}

func (p *process) stop() {
	p.cancel()
	<-p.done
}

// environment is this process's without strikecache's own variables, which would change what is served.
func environment() []string {
	var kept []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STRIKECACHE_") {
			kept = append(kept, v)
		}
	}
	return kept
}

// answers waits until a URL answers 200.
func (p *process) answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client := newClient()
	defer client.http.CloseIdleConnections()
	for {
		got, err := client.get(ctx, url, nil)
		if err == nil && got.status == http.StatusOK {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("the process ended; its last lines:\n%s", p.out.last())
		case <-ctx.Done():
			return fmt.Errorf("%s did not answer: %w; the last lines of the process:\n%s", url, errors.Join(err, ctx.Err()), p.out.last())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// line is one of strikecache's log.
type line struct {
	Time                  time.Time
	Msg, Address, Version string
	Endpoint, Coding, Key string
	Status                int
}

// output keeps what a process writes: log lines, and the end of everything else.
type output struct {
	mu    sync.Mutex
	part  []byte
	lines []line
	other []string
}

// keptLines is how many lines that are no log lines are kept.
const keptLines = 20

// Write implements io.Writer.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = append(o.part, p...)
	for {
		text, rest, found := bytes.Cut(o.part, []byte("\n"))
		if !found {
			return len(p), nil
		}
		var l line
		if json.Unmarshal(text, &l) == nil {
			o.lines = append(o.lines, l)
		} else if o.other = append(o.other, string(text)); len(o.other) > keptLines {
			o.other = o.other[1:]
		}
		o.part = rest
	}
}

// since returns the log lines after the first n.
func (o *output) since(n int) []line {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines[n:len(o.lines):len(o.lines)]
}

func (o *output) last() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.other, "\n")
}

// key is an API key: its public id and its secret.
type key struct{ id, secret string }

// origin is strikecache.
type origin struct {
	*process
	url, version string
	keys         []key
}

// startOrigin builds strikecache, makes two keys and serves the simulated market.
func startOrigin(ctx context.Context, dir string) (*origin, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return nil, fmt.Errorf("find the module: %w", err)
	}
	binary := filepath.Join(dir, "strikecache.exe") // the ending matters on one system and harms on none
	build := exec.CommandContext(ctx, "go", "build", "-o", binary, ".")
	build.Dir = filepath.Dir(strings.TrimSpace(string(out)))
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build strikecache: %w\n%s", err, out)
	}
	o := &origin{}
	keysFile := filepath.Join(dir, "keys.json")
	if o.keys, err = createKeys(ctx, binary, keysFile); err != nil {
		return nil, err
	}
	o.process, err = start(ctx, binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"),
		"--keys-file", keysFile, "--admin-listen", "", "--log-every", "1", "--log-format", "json")
	if err != nil {
		return nil, err
	}
	if err := errors.Join(o.ready(ctx), o.settleIn(ctx)); err != nil {
		o.stop()
		return nil, fmt.Errorf("strikecache: %w", err)
	}
	return o, nil
}

func (o *origin) ready(ctx context.Context) error {
	for range 200 {
		for _, l := range o.out.since(0) {
			if l.Msg == "serving" {
				o.url, o.version = l.Address, l.Version
				return o.answers(ctx, o.url+"/readyz")
			}
		}
		select {
		case <-o.done:
			return fmt.Errorf("the process ended; its last lines:\n%s", o.out.last())
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("did not say in 10 s where it serves")
}

// calm is how long after its start the origin is left alone. The first refresh comes at once and the next one a
// max-age after it, so what Varnish fetches at first is replaced well before Varnish asks again.
const calm = 6 * time.Second

func (o *origin) settleIn(ctx context.Context) error {
	for _, l := range o.out.since(0) {
		if l.Msg == "serving" {
			return pause(ctx, time.Until(l.Time.Add(calm)))
		}
	}
	return nil // ready has said so
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// dailyLimit is far above what is sent. It makes every answer to a key carry rate-limit headers, which must not
// reach anybody else either.
const dailyLimit = "1000000"

func createKeys(ctx context.Context, binary, file string) ([]key, error) {
	command := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, binary, append(args, "--keys-file", file)...)
		cmd.Env = environment()
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("strikecache %s: %w", strings.Join(args[:2], " "), err)
		}
		return out, nil
	}
	secrets := map[string]string{}
	for _, name := range []string{"first", "second"} {
		secret, err := command("keys", "create", name, "--per-day", dailyLimit)
		if err != nil {
			return nil, err
		}
		secrets[name] = strings.TrimSpace(string(secret))
	}
	list, err := command("keys", "list", "--json")
	if err != nil {
		return nil, err
	}
	var rows []struct{ ID, Name string }
	if err := json.Unmarshal(list, &rows); err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	var keys []key
	for _, row := range rows {
		keys = append(keys, key{row.ID, secrets[row.Name]})
	}
	if len(keys) != len(secrets) {
		return nil, fmt.Errorf("%d keys are listed, %d were created", len(keys), len(secrets))
	}
	return keys, nil
}

// startVarnish starts varnishd in front of the origin, with its built-in VCL, and returns its base URL. Without
// -j none it would change its user, who may not enter the directory.
func (b *bench) startVarnish(ctx context.Context, name string, params ...string) (*process, string, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", fmt.Errorf("find a port: %w", err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		return nil, "", fmt.Errorf("free a port: %w", err)
	}
	p, err := start(ctx, b.varnishd, append([]string{"-F", "-j", "none", "-T", "none", "-a", address,
		"-b", strings.TrimPrefix(b.origin.url, "http://"), "-n", filepath.Join(b.dir, name), "-s", "malloc,64m"}, params...)...)
	if err != nil {
		return nil, "", err
	}
	if err := p.answers(ctx, "http://"+address+"/healthz"); err != nil {
		p.stop()
		return nil, "", fmt.Errorf("varnishd: %w", err)
	}
	return p, "http://" + address, nil
}
