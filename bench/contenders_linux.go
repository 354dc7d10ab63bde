package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// bench is the state of a side-by-side run.
type bench struct {
	dir    string // everything that is written goes here, and away at the end
	core   int    // of the server under measurement
	ours   string // address of strikecache
	cells  []cell
	answer map[string]prepared // by cell: what strikecache answers
}

// prepared is a request and the bytes of its answer.
type prepared struct {
	path string
	raw  []byte // the whole answer
	body []byte
	etag string
}

// rival is a server that can be put beside strikecache.
type rival struct {
	name, how, program string
	version            []string // arguments that make it tell
	start              func(context.Context, *bench) (*process, map[string]string, error)
}

// endpoints maps every cell to one address.
func (b *bench) endpoints(address string) map[string]string {
	m := map[string]string{}
	for _, c := range b.cells {
		m[c.Name] = address
	}
	return m
}

var rivals = []rival{
	{name: "net/http", how: "Go's net/http, the same headers and bytes from memory", start: startNetHTTP},
	{name: "nginx", program: "nginx", version: []string{"-v"}, start: startNginx,
		how: "static files, sendfile, open_file_cache, one worker, no access log; fewer headers than strikecache sends"},
	{name: "lighttpd", program: "lighttpd", version: []string{"-v"}, start: startLighttpd,
		how: "static files, one worker, no access log; fewer headers than strikecache sends"},
	{name: "haproxy", program: "haproxy", version: []string{"-v"}, start: startHAProxy,
		how: "http-request return from memory, one thread; fewer headers than strikecache sends"},
	{name: "varnish", program: "varnishd", version: []string{"-V"}, start: startVarnish,
		how: "hits of a cache in memory in front of strikecache"},
}

var versionNumber = regexp.MustCompile(`\d+\.\d+[.\d]*`)

// versionOf asks a program; it returns false when the program is not installed.
func (r *rival) versionOf(ctx context.Context) (string, bool) {
	if r.program == "" {
		return "", true
	}
	path, err := find(r.program)
	if err != nil {
		return "", false
	}
	out, err := exec.CommandContext(ctx, path, r.version...).CombinedOutput()
	if err != nil {
		return "", false
	}
	return versionNumber.FindString(string(out)), true
}

// find also looks where servers are installed and an ordinary user's path does not lead.
func find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + program)
	}
	return path, err
}

// file is the name of a cell's files.
func (c *cell) file() string { return strings.ToLower(strings.ReplaceAll(c.Name, " ", "")) }

// startEpoll starts the bare loop: an address for each cell, since it does not look at what is asked.
func startEpoll(ctx context.Context, b *bench) (*process, map[string]string, error) {
	addresses, args := map[string]string{}, []string{}
	var last string
	for _, c := range b.cells {
		address, err := freeAddress()
		if err != nil {
			return nil, nil, err
		}
		addresses[c.Name], last = address, address
		args = append(args, address+"="+filepath.Join(b.dir, c.file()+".wire"))
	}
	p, err := start(ctx, b.core, last, filepath.Join(b.dir, "epoll"), args...)
	return p, addresses, err
}

func startNetHTTP(ctx context.Context, b *bench) (*process, map[string]string, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, nil, err
	}
	p, err := start(ctx, b.core, address, filepath.Join(b.dir, "nethttp"), address, b.dir)
	return p, b.endpoints(address), err
}

// configure writes a configuration and starts a program with it.
func (b *bench) configure(ctx context.Context, program, config string, args func(file, address string) []string) (*process, map[string]string, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, nil, err
	}
	_, port, _ := net.SplitHostPort(address)
	_, oursPort, _ := net.SplitHostPort(b.ours)
	text := strings.NewReplacer("{dir}", b.dir, "{port}", port, "{ours}", oursPort).Replace(config)
	file := filepath.Join(b.dir, program+".conf")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		return nil, nil, err
	}
	path, err := find(program)
	if err != nil {
		return nil, nil, err
	}
	p, err := start(ctx, b.core, address, path, args(file, address)...)
	return p, b.endpoints(address), err
}

const nginxConfig = `
%s
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

func startNginx(ctx context.Context, b *bench) (*process, map[string]string, error) {
	user := ""
	if os.Geteuid() == 0 {
		user = "user root;" // its worker must be able to read the temporary directory
	}
	return b.configure(ctx, "nginx", fmt.Sprintf(nginxConfig, user), func(file, _ string) []string {
		return []string{"-p", b.dir, "-e", filepath.Join(b.dir, "nginx.log"), "-c", file}
	})
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

func startLighttpd(ctx context.Context, b *bench) (*process, map[string]string, error) {
	return b.configure(ctx, "lighttpd", lighttpdConfig, func(file, _ string) []string { return []string{"-D", "-f", file} })
}

const haproxyConfig = `
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

func startHAProxy(ctx context.Context, b *bench) (*process, map[string]string, error) {
	config := haproxyConfig
	for _, c := range b.cells {
		etag := b.answer[c.Name].etag
		config += fmt.Sprintf("\thttp-request return status 304 hdr ETag '%s' if { path /%s } { req.hdr(If-None-Match) -m str '%s' }\n", etag, c.file(), etag)
		config += fmt.Sprintf("\thttp-request return status 200 content-type application/json file {dir}/www/%s hdr ETag '%s' if { path /%s }\n", c.file(), etag, c.file())
	}
	return b.configure(ctx, "haproxy", config, func(file, _ string) []string { return []string{"-db", "-f", file} })
}

// Without gunzip and with any lifetime, what strikecache sends is kept and sent as it is. The two headers that change
// in length from answer to answer go.
const varnishConfig = `vcl 4.1;
backend ours { .host = "127.0.0.1"; .port = "{ours}"; }
sub vcl_backend_response { set beresp.ttl = 1h; }
sub vcl_deliver { unset resp.http.Age; unset resp.http.X-Varnish; }
`

func startVarnish(ctx context.Context, b *bench) (*process, map[string]string, error) {
	return b.configure(ctx, "varnishd", varnishConfig, func(file, address string) []string {
		return []string{"-F", "-j", "none", "-n", filepath.Join(b.dir, "varnish"), "-a", address, "-T", "none", "-f", file,
			"-s", "malloc,64m", "-p", "http_gzip_support=off", "-p", "timeout_idle=3600"}
	})
}
