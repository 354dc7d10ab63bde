package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a server that this run has started and will end.
type process struct {
	*exec.Cmd
	address string        // on which it listens
	log     string        // path of the file with its output
	end     chan struct{} // closed when it has ended
	err     error         // valid once end is closed
}

// start runs a command on the servers' core and waits until its address accepts connections. So a Go program has a GOMAXPROCS
// of 1. The process runs until [comparison.stop].
func (b *comparison) start(ctx context.Context, address, name string, args ...string) (*process, error) {
	p := &process{Cmd: exec.Command("taskset", slices.Concat([]string{"-c", strconv.Itoa(serverCore), name}, args)...), address: address, end: make(chan struct{})}
	out, err := os.CreateTemp(b.dir, "log-")
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p.log, p.Stdout, p.Stderr = out.Name(), out, out
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C does not reach it: stop ends it
	p.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "STRIKECACHE_") }), b.environment...)
	if err := p.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	b.running = append(b.running, p)
	go func() { p.err = p.Wait(); close(p.end) }()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return p, conn.Close()
		}
		select {
		case <-p.end:
			return nil, fmt.Errorf("%s ended: %w\n%s", name, p.err, p.lastLines())
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil, fmt.Errorf("%s does not listen on %s\n%s", name, address, p.lastLines())
}

// stayOn keeps every thread of this process on one core.
func stayOn(ctx context.Context, core int) error {
	out, err := exec.CommandContext(ctx, "taskset", "-a", "-p", "-c", fmt.Sprint(core), fmt.Sprint(os.Getpid())).CombinedOutput()
	if err != nil {
		return fmt.Errorf("stay on core %d: %w\n%s", core, err, out)
	}
	return nil
}

func (p *process) pid() int { return p.Process.Pid }

// printed returns what the process has printed until now.
func (p *process) printed() string {
	text, _ := os.ReadFile(p.log) // the file was created by start
	return string(text)
}

// lastLines returns the last lines of the output, for an error.
func (p *process) lastLines() string {
	lines := strings.SplitAfter(p.printed(), "\n")
	return strings.Join(lines[max(len(lines)-20, 0):], "")
}

// stop kills every process and its children. No server has anything that a kill could lose.
func (b *comparison) stop() {
	for _, p := range b.running {
		_ = syscall.Kill(-p.pid(), syscall.SIGKILL) // it may have ended
		<-p.end
	}
	b.running = nil
}

// freeAddress returns an address on which no process listens now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// stillMarket is the flags of a strikecache whose answers do not change any more: those of one instant of the simulated market, the same
// for every strikecache.
var stillMarket = []string{"--sim-speed", "0", "--sim-start", "2026-11-20T16:00:00Z"}

// serve starts a strikecache with the still market of three underlyings, and waits until it has filled in past dates and the tracks of
// today, too. A further start under the same name finds what was back-filled.
func (b *comparison) serve(ctx context.Context, name, binary string, flags ...string) (*side, error) {
	done := `msg="history filled in"`
	if _, err := os.Stat(b.dataOf(name)); err == nil {
		done = ""
	}
	return b.serveUntil(ctx, done, name, binary, slices.Concat(stillMarket, []string{"--underlyings", "SPX,SPY,XLF"}, flags)...)
}

// dataOf returns the data directory of the strikecache of a name.
func (b *comparison) dataOf(name string) string { return filepath.Join(b.dir, "data", name) }

// serveUntil starts a strikecache and waits until it is ready, has logged a text, and was idle for three seconds in a row, because on a busy
// machine a server that waits for the processor looks idle, too.
func (b *comparison) serveUntil(ctx context.Context, done, name, binary string, flags ...string) (*side, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	args := append([]string{"serve", "--listen", address, "--data-dir", b.dataOf(name), "--admin-listen", "",
		"--max-connections", strconv.Itoa(maxConnections)}, flags...)
	p, err := b.start(ctx, address, binary, args...)
	if err != nil {
		return nil, err
	}
	var before, after time.Duration
	idle := 0
	for deadline := time.Now().Add(10 * time.Minute); time.Now().Before(deadline) && ctx.Err() == nil; before = after {
		time.Sleep(time.Second)
		if after, err = cpuTime(p.pid()); err != nil {
			return nil, fmt.Errorf("%s ended: %w\n%s", name, err, p.lastLines())
		}
		if idle++; after-before > 100*time.Millisecond {
			idle = 0
		}
		x, err := exchangeWith(ctx, address, ask("/readyz", "identity", ""))
		if err == nil && x.status == 200 && idle >= 3 && strings.Contains(p.printed(), done) {
			return &side{server: server{Name: name}, process: p, ours: true}, nil
		}
	}
	return nil, cmp.Or(ctx.Err(), fmt.Errorf("%s is not ready and idle within ten minutes\n%s", name, p.lastLines()))
}

// maxConnections is the limit of connections of every server that has one. A burst and 10,000 connections are below it.
const maxConnections = 12_000

// rival is a server that can be put beside strikecache. startRival replaces the words in braces in its arguments and in its
// configuration.
type rival struct {
	name    string
	program string // "": a hidden command of this program
	args    string
	config  string
}

// rivals are started in this order, the bare loop first.
var rivals = []rival{
	{name: "bare epoll loop", args: "epoll {ADDRESS} {DIR}"},
	{name: "net/http", args: "nethttp {ADDRESS} {DIR}"},
	{name: "nginx", program: "nginx", args: "-p {DIR} -e {DIR}/nginx.log -c {CONFIG}", config: nginxConfig},
	{name: "lighttpd", program: "lighttpd", args: "-D -f {CONFIG}", config: lighttpdConfig},
	{name: "h2o", program: "h2o", args: "-c {CONFIG}", config: h2oConfig},
}

var versionNumber = regexp.MustCompile(`\d+\.\d+[.\d]*`)

// startRival starts a rival. The error is [exec.ErrNotFound] when it is not installed.
func (b *comparison) startRival(ctx context.Context, r rival) (*side, error) {
	s := &side{server: server{Name: r.name}}
	path, err := os.Executable()
	if r.program != "" {
		// Servers are installed in /usr/sbin, which an ordinary user's PATH may lack.
		if path, err = exec.LookPath(r.program); err != nil {
			if path, err = exec.LookPath("/usr/sbin/" + r.program); err != nil {
				return nil, exec.ErrNotFound
			}
		}
		version, _ := exec.CommandContext(ctx, path, "-v").CombinedOutput()
		s.Version = versionNumber.FindString(string(version))
	}
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(address)
	file := filepath.Join(b.dir, r.program+".conf")
	nginxUser, h2oUser := "", ""
	if os.Geteuid() == 0 {
		nginxUser, h2oUser = "user root;", "user: root"
	}
	fill := strings.NewReplacer("{DIR}", b.dir, "{ADDRESS}", address, "{PORT}", port, "{CONFIG}", file, "{NGINX USER}", nginxUser,
		"{H2O USER}", h2oUser, "{CONNECTIONS}", strconv.Itoa(maxConnections))
	if err := os.WriteFile(file, []byte(fill.Replace(r.config)), 0o644); err != nil {
		return nil, err
	}
	s.process, err = b.start(ctx, address, path, strings.Fields(fill.Replace(r.args))...)
	return s, err
}

// If root starts nginx, the worker must stay root to be able to read the temporary directory. nginx uses less CPU time for
// 1 KB and 8 KB without sendfile (1.30 and 1.41 times the bare loop, with sendfile 1.58 and 1.52), and for 60 KB with sendfile
// and tcp_nopush (0.90, without sendfile 1.32). A 304 sends no file. multi_accept saves 6 % of a new connection. (2026-11-23)
const nginxConfig = `{NGINX USER}
daemon off;
worker_processes 1;
worker_rlimit_nofile {CONNECTIONS};
pid {DIR}/nginx.pid;
error_log {DIR}/nginx.log;
events {
	worker_connections {CONNECTIONS};
	multi_accept on;
}
http {
	access_log off;
	sendfile off;
	output_buffers 1 128k;
	etag on;
	default_type application/json;
	open_file_cache max=100 inactive=1h;
	open_file_cache_valid 1h;
	keepalive_requests 1000000000;
	keepalive_timeout 1h;
	client_body_temp_path {DIR}/nginx-body;
	proxy_temp_path {DIR}/nginx-proxy;
	fastcgi_temp_path {DIR}/nginx-fastcgi;
	uwsgi_temp_path {DIR}/nginx-uwsgi;
	scgi_temp_path {DIR}/nginx-scgi;
	server {
		listen 127.0.0.1:{PORT} reuseport backlog=4096;
		root {DIR}/www;
		location = /2 {
			sendfile on;
			tcp_nopush on;
		}
	}
}
`

const lighttpdConfig = `
server.document-root = "{DIR}/www"
server.bind = "127.0.0.1"
server.port = {PORT}
server.errorlog = "{DIR}/lighttpd.log"
server.max-keep-alive-requests = 65535
server.max-keep-alive-idle = 3600
server.max-connections = {CONNECTIONS}
server.max-fds = 20000
server.listen-backlog = 4096
mimetype.assign = ( "" => "application/json" )
`

const h2oConfig = `
listen: {host: 127.0.0.1, port: {PORT}}
num-threads: 1
max-connections: {CONNECTIONS}
http1-request-timeout: 3600
{H2O USER}
hosts:
  default:
    paths:
      /: {file.dir: {DIR}/www, file.mime.setdefaulttype: application/json}
`
