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
	"regexp"
	"runtime"
	"slices"
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
	log *processLog
	end chan struct{} // closed when it has ended
	err error         // after end
}

// processLog keeps what a server prints.
type processLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *processLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *processLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// end returns the last lines, for an error.
func (l *processLog) end() string {
	lines := strings.SplitAfter(l.String(), "\n")
	return strings.Join(lines[max(len(lines)-20, 0):], "")
}

// start runs a command on some cores and waits until its address accepts connections. A Go program takes GOMAXPROCS
// from the number of these cores. The process runs until [sideBySide.stop].
func (b *sideBySide) start(ctx context.Context, cores []int, address string, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(name, args...), log: &processLog{}, end: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt reaches it through stop alone
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STRIKECACHE_") {
			p.cmd.Env = append(p.cmd.Env, v)
		}
	}
	if err := startOn(cores, p.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	b.running = append(b.running, p)
	go func() { p.err = p.cmd.Wait(); close(p.end) }()
	for deadline := time.Now().Add(time.Minute); ; {
		conn, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			return p, conn.Close()
		}
		select {
		case <-p.end:
			return nil, fmt.Errorf("%s ended: %w\n%s", name, p.err, p.log.end())
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s does not listen on %s\n%s", name, address, p.log.end())
		}
	}
}

// startOn starts a command whose threads may run on some cores only: a child has the affinity of the thread that
// starts it.
func startOn(cores []int, cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var mine, its unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mine); err != nil {
		return err
	}
	for _, core := range cores {
		its.Set(core)
	}
	if err := unix.SchedSetaffinity(0, &its); err != nil {
		return fmt.Errorf("cores %v: %w", cores, err)
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

// stop asks every process to end, the last one first, and after five seconds kills it with all that it started.
func (b *sideBySide) stop() {
	for _, p := range slices.Backward(b.running) {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		select {
		case <-p.end:
		case <-time.After(5 * time.Second):
			_ = syscall.Kill(-p.pid(), syscall.SIGKILL)
			<-p.end
		}
	}
	b.running = nil
}

// freeAddress returns an address that nobody listens on now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// rival is a server that can be put beside strikecache.
type rival struct {
	name, how string
	program   string   // none: it is a command of this program
	version   []string // arguments that print it
	config    func(*sideBySide) string
	args      func(b *sideBySide, config, address string) []string
}

var rivals = []rival{
	{name: "net/http", how: "Go's net/http, the same headers and bytes from memory",
		args: func(b *sideBySide, _, address string) []string { return []string{"nethttp", address, b.dir} }},
	{name: "nginx", program: "nginx", version: []string{"-v"}, config: nginxConfig,
		how: "static files, sendfile, open_file_cache, one worker, no access log; fewer headers than strikecache sends",
		args: func(b *sideBySide, config, _ string) []string {
			return []string{"-p", b.dir, "-e", filepath.Join(b.dir, "nginx.log"), "-c", config}
		}},
	{name: "lighttpd", program: "lighttpd", version: []string{"-v"}, config: func(*sideBySide) string { return lighttpdConfig },
		how:  "static files, one worker, no access log; fewer headers than strikecache sends",
		args: func(_ *sideBySide, config, _ string) []string { return []string{"-D", "-f", config} }},
	{name: "haproxy", program: "haproxy", version: []string{"-v"}, config: haproxyConfig,
		how:  "http-request return from memory, one thread; fewer headers than strikecache sends",
		args: func(_ *sideBySide, config, _ string) []string { return []string{"-db", "-f", config} }},
	{name: "varnish", program: "varnishd", version: []string{"-V"}, config: func(*sideBySide) string { return varnishConfig },
		how: "hits of a cache in memory in front of strikecache",
		args: func(b *sideBySide, config, address string) []string {
			return []string{"-F", "-j", "none", "-n", filepath.Join(b.dir, "varnish"), "-a", address, "-T", "none", "-f", config,
				"-s", "malloc,64m", "-p", "http_gzip_support=off", "-p", "timeout_idle=3600"}
		}},
}

var versionNumber = regexp.MustCompile(`\d+\.\d+[.\d]*`)

// find returns the program's path and version, or false when it is not installed. It also looks where servers are
// installed and an ordinary user's path does not lead.
func (r *rival) find(ctx context.Context, self string) (path, version string, ok bool) {
	if r.program == "" {
		return self, "", true
	}
	path, err := exec.LookPath(r.program)
	if err != nil {
		if path, err = exec.LookPath("/usr/sbin/" + r.program); err != nil {
			return "", "", false
		}
	}
	out, err := exec.CommandContext(ctx, path, r.version...).CombinedOutput()
	return path, versionNumber.FindString(string(out)), err == nil
}

// start writes the rival's configuration, starts it and returns its address.
func (r *rival) start(ctx context.Context, b *sideBySide, path string) (*process, string, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, "", err
	}
	file := ""
	if r.config != nil {
		_, port, _ := net.SplitHostPort(address)
		_, oursPort, _ := net.SplitHostPort(b.ours)
		text := strings.NewReplacer("{dir}", b.dir, "{port}", port, "{ours}", oursPort).Replace(r.config(b))
		file = filepath.Join(b.dir, r.program+".conf")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return nil, "", err
		}
	}
	p, err := b.start(ctx, []int{b.core}, address, path, r.args(b, file, address)...)
	return p, address, err
}

func nginxConfig(*sideBySide) string {
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // its worker must be able to read the temporary directory
	}
	return user + `
daemon off;
worker_processes 1;
pid {dir}/nginx.pid;
error_log {dir}/nginx.log;
events { worker_connections 1024; }
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	etag on;
	default_type application/json;
	open_file_cache max=100 inactive=1h;
	open_file_cache_valid 1h;
	keepalive_requests 1000000000;
	keepalive_timeout 1h;
	client_body_temp_path {dir}/nginx-body;
	proxy_temp_path {dir}/nginx-proxy;
	fastcgi_temp_path {dir}/nginx-fastcgi;
	uwsgi_temp_path {dir}/nginx-uwsgi;
	scgi_temp_path {dir}/nginx-scgi;
	server {
		listen 127.0.0.1:{port};
		root {dir}/www;
	}
}
`
}

const lighttpdConfig = `
server.document-root = "{dir}/www"
server.bind = "127.0.0.1"
server.port = {port}
server.errorlog = "{dir}/lighttpd.log"
server.max-keep-alive-requests = 65535
server.max-keep-alive-idle = 3600
mimetype.assign = ( "" => "application/json" )
`

func haproxyConfig(b *sideBySide) string {
	config := `
global
	nbthread 1
	tune.bufsize 131072
defaults
	mode http
	timeout connect 5s
	timeout server 1h
	timeout client 1h
frontend f
	bind 127.0.0.1:{port}
`
	for _, a := range b.answers {
		config += fmt.Sprintf("\thttp-request return status 304 hdr ETag '%s' if { path /%s } { req.hdr(If-None-Match) -m str '%s' }\n", a.etag, a.file(), a.etag)
		config += fmt.Sprintf("\thttp-request return status 200 content-type application/json file {dir}/www/%s hdr ETag '%s' if { path /%s }\n", a.file(), a.etag, a.file())
	}
	return config
}

// Without gunzip and with any lifetime, Varnish stores and sends what strikecache sends as it is. The two headers that
// change in length from answer to answer are removed.
const varnishConfig = `vcl 4.1;
backend ours { .host = "127.0.0.1"; .port = "{ours}"; }
sub vcl_backend_response { set beresp.ttl = 1h; }
sub vcl_deliver { unset resp.http.Age; unset resp.http.X-Varnish; }
`
