package certs

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// pollEvery is how often the files are read. Two small files take some 50 µs; their contents tell what their
	// times do not, such as a link that points elsewhere now.
	pollEvery = 2 * time.Second
	// maxFile bounds each file in bytes; a chain of ten certificates has some 20 KB.
	maxFile = 1 << 20
)

// Flags are the flags of a TLS listener.
type Flags struct {
	Cert string `help:"File of the TLS certificate and its chain, PEM; with it --listen speaks TLS alone. Changes are followed." type:"path" placeholder:"FILE" group:"Access"`
	Key  string `help:"File of the certificate's private key, PEM." type:"path" placeholder:"FILE" group:"Access"`
}

// Check returns an error unless there are both files or none.
func (f Flags) Check() error {
	if (f.Cert == "") != (f.Key == "") {
		return errors.New("--tls-cert and --tls-key belong together: give both or none")
	}
	return nil
}

// Open opens the pair that the flags name, nil when they name none.
func (f Flags) Open(log *slog.Logger) (*Pair, error) {
	if f.Cert == "" {
		return nil, nil
	}
	return Open(f.Cert, f.Key, log)
}

// Pair is the certificate in force. Create it with [Open]. A nil Pair is none: its methods say so. All methods may be
// called at the same time.
type Pair struct {
	certFile, keyFile string
	log               *slog.Logger

	inForce atomic.Pointer[tls.Certificate] // never nil, never changed once stored
	failure atomic.Pointer[error]           // of the last look at the files; nil: none

	seen [sha256.Size]byte // of the files that were judged last
	bad  error             // what was wrong with them

	done    chan struct{}
	running sync.WaitGroup
}

// Open reads the files, which must be a usable pair, and looks at them every two seconds until [Pair.Close]. One that
// is out of date is in force all the same, as there is no other.
func Open(certFile, keyFile string, log *slog.Logger) (*Pair, error) {
	p := &Pair{certFile: certFile, keyFile: keyFile, log: log, done: make(chan struct{})}
	cert, err := p.read()
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	p.inForce.Store(cert)
	if err := p.Err(); err != nil {
		log.Error("TLS certificate is of no use to clients", "err", err)
	}
	p.running.Go(p.follow)
	return p, nil
}

// Close stops looking at the files.
func (p *Pair) Close() {
	if p != nil {
		close(p.done)
		p.running.Wait()
	}
}

// Config returns the TLS configuration of a server, nil for none: Go's defaults from TLS 1.2 on, and HTTP/1.1 alone.
func (p *Pair) Config() *tls.Config {
	if p == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return p.inForce.Load(), nil },
	}
}

// Err returns why the files as they are now are not in force, or why no client accepts what is.
func (p *Pair) Err() error {
	if p == nil {
		return nil
	}
	if err := p.failure.Load(); err != nil {
		return *err
	}
	return current(p.inForce.Load(), time.Now())
}

// Expires returns the instant until which the certificate in force is valid, the zero time without one.
func (p *Pair) Expires() time.Time {
	if p == nil {
		return time.Time{}
	}
	return p.inForce.Load().Leaf.NotAfter
}

func (p *Pair) follow() {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.look(time.Now())
		case <-p.done:
			return
		}
	}
}

// look puts a changed pair in force if it is good, and keeps the old one otherwise. An error is logged unless it is
// that of the last look.
func (p *Pair) look(now time.Time) {
	before := p.failure.Load()
	cert, err := p.read()
	if err == nil && cert != nil {
		if err = current(cert, now); err == nil {
			p.inForce.Store(cert)
			p.log.Info("TLS certificate loaded", "file", p.certFile, "expires", cert.Leaf.NotAfter)
		} else {
			p.seen = [sha256.Size]byte{} // its time may come
		}
	}
	switch {
	case err == nil && before != nil && cert == nil:
		p.log.Info("TLS files are usable again", "file", p.certFile)
	case err != nil && (before == nil || (*before).Error() != err.Error()):
		p.log.Error("TLS certificate not loaded: the old one stays", "err", err)
	}
	if err == nil {
		p.failure.Store(nil)
	} else {
		p.failure.Store(&err)
	}
}

// read returns the pair in the files, nil when they were judged before and are good.
func (p *Pair) read() (*tls.Certificate, error) {
	cert, err := readFile(p.certFile)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	key, err := readFile(p.keyFile)
	if err != nil {
		return nil, fmt.Errorf("private key: %w", err)
	}
	sum := sha256.Sum256(bytes.Join([][]byte{cert, key}, []byte{0}))
	if sum == p.seen {
		return nil, p.bad
	}
	pair, err := tls.X509KeyPair(cert, key)
	if p.seen = sum; err != nil {
		p.bad = fmt.Errorf("%s with %s: %w", p.certFile, p.keyFile, err)
		return nil, p.bad
	}
	p.bad = nil
	return &pair, nil
}

// readFile reads a regular file of bounded size.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path) // opening what is no regular file could wait for ever
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file", path)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path) //nolint:gosec // G304: the operator names it
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(b) > maxFile {
		err = fmt.Errorf("%s has over %d bytes", path, maxFile)
	}
	return b, err
}

// current returns an error when a certificate is not valid now.
func current(cert *tls.Certificate, now time.Time) error {
	switch leaf := cert.Leaf; {
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("TLS certificate is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	case now.After(leaf.NotAfter):
		return fmt.Errorf("TLS certificate has expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}
