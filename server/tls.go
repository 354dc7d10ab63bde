package server

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"strikecache/server/watch"
)

const (
	// certificateEvery is how often the files are read. Two small files take some 50 µs.
	certificateEvery = 2 * time.Second
	// maxCertificate bounds each file in bytes. A chain of ten certificates has some 20 KB.
	maxCertificate = 1 << 20
)

// TLSFlags are the flags of a TLS listener.
type TLSFlags struct {
	Cert string `help:"PEM file of the TLS certificate and its chain. With it, --listen accepts only TLS. A running server loads changes." type:"path" placeholder:"FILE" group:"Access"`
	Key  string `help:"PEM file of the certificate's private key." type:"path" placeholder:"FILE" group:"Access"`
}

// Check returns an error unless there are both files or none.
func (f TLSFlags) Check() error {
	if (f.Cert == "") != (f.Key == "") {
		return errors.New("--tls-cert and --tls-key belong together: give both or none")
	}
	return nil
}

// Open opens the certificate that the flags name, nil when they name none.
func (f TLSFlags) Open(log *slog.Logger) (*Certificate, error) {
	if f.Cert == "" {
		return nil, nil
	}
	return OpenCertificate(f.Cert, f.Key, log)
}

// Certificate is the TLS certificate in force, which follows its files. Create it with [OpenCertificate]. The methods
// of a nil Certificate say that there is none. All methods may be called at the same time.
type Certificate struct {
	files   *watch.Files
	log     *slog.Logger
	inForce atomic.Pointer[tls.Certificate] // nil before the first; never changed once stored
}

// OpenCertificate reads two PEM files, which must be a usable pair, and looks for changes every two seconds until
// [Certificate.Close]. Only this first certificate may be out of date, as there is no other.
func OpenCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{log: log}
	files, err := watch.Open(watch.Config{
		Name: "TLS certificate", Paths: []string{certFile, keyFile}, Every: certificateEvery, Log: log,
		Read: func(path string) ([]byte, error) { return watch.ReadFile(path, maxCertificate) },
		Load: func(contents [][]byte, now time.Time) error {
			pair, err := tls.X509KeyPair(contents[0], contents[1])
			if err != nil {
				return fmt.Errorf("%s with %s: %w", certFile, keyFile, err)
			}
			return c.replace(&pair, now)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	c.files = files
	if err := c.Err(); err != nil {
		log.Error("TLS certificate not valid", "err", err)
	}
	return c, nil
}

// replace puts a certificate in force. One that is not valid now replaces no other.
func (c *Certificate) replace(pair *tls.Certificate, now time.Time) error {
	if c.inForce.Load() != nil {
		if err := checkValidity(pair, now); err != nil {
			return err
		}
		c.log.Info("TLS certificate loaded", "expires", pair.Leaf.NotAfter)
	}
	c.inForce.Store(pair)
	return nil
}

// checkValidity returns an error when a certificate is not valid now.
func checkValidity(pair *tls.Certificate, now time.Time) error {
	switch leaf := pair.Leaf; {
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("TLS certificate is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	case now.After(leaf.NotAfter):
		return fmt.Errorf("TLS certificate has expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// Close stops following the files.
func (c *Certificate) Close() {
	if c != nil {
		c.files.Close()
	}
}

// Config returns the TLS configuration of a server, nil for none: Go's defaults from TLS 1.2 on, and HTTP/1.1 alone.
func (c *Certificate) Config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.inForce.Load(), nil },
	}
}

// Err returns why the files as they are now are not in force, or why no client accepts the certificate in force.
func (c *Certificate) Err() error {
	if c == nil {
		return nil
	}
	if err := c.files.Err(); err != nil {
		return err
	}
	return checkValidity(c.inForce.Load(), time.Now())
}

// Expires returns until when the certificate in force is valid, the zero time without one.
func (c *Certificate) Expires() time.Time {
	if c == nil {
		return time.Time{}
	}
	return c.inForce.Load().Leaf.NotAfter
}
