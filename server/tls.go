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

// maxCertificate bounds each file in bytes. A chain of ten certificates has some 20 KB.
const maxCertificate = 1 << 20

// TLSFlags are the flags of a TLS listener.
type TLSFlags struct {
	Cert string `help:"PEM file of the TLS certificate and its chain. With it, --listen accepts only TLS. A running server loads changes." type:"path" placeholder:"FILE" group:"Access"`
	Key  string `help:"PEM file of the certificate's private key." type:"path" placeholder:"FILE" group:"Access"`
}

// Check returns an error when one of the two flags is set without the other.
func (f TLSFlags) Check() error {
	if (f.Cert == "") != (f.Key == "") {
		return errors.New("--tls-cert and --tls-key belong together: give both or none")
	}
	return nil
}

// Certificate is the TLS certificate in force. It is replaced when its files change. Create it with [TLSFlags.Open].
// The methods of a nil Certificate behave as without TLS. A Certificate is safe for concurrent use.
type Certificate struct {
	files   *watch.Files
	inForce atomic.Pointer[tls.Certificate] // nil until the first is loaded; a stored certificate never changes
}

// Open reads the certificate and its key, and reads them again every second until [Certificate.Close]. It fails when they are not a
// matching pair. An expired certificate is used at the start, with an error in the log. Later, only a valid certificate replaces the
// certificate in force. Open returns nil when the flags name no certificate.
func (f TLSFlags) Open(log *slog.Logger) (*Certificate, error) {
	if f.Cert == "" {
		return nil, nil
	}
	c := &Certificate{}
	files, err := watch.Open(watch.Config{
		Name: "TLS certificate", Paths: []string{f.Cert, f.Key}, Log: log,
		Read: func(path string) ([]byte, error) { return watch.ReadFile(path, maxCertificate) },
		Load: func(contents [][]byte, now time.Time) error {
			pair, err := tls.X509KeyPair(contents[0], contents[1])
			if err != nil {
				return fmt.Errorf("%s with %s: %w", f.Cert, f.Key, err)
			}
			if c.inForce.Load() != nil {
				if err := checkValidity(&pair, now); err != nil {
					return err
				}
				log.Info("TLS certificate loaded", "expires", pair.Leaf.NotAfter)
			}
			c.inForce.Store(&pair)
			return nil
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

func checkValidity(pair *tls.Certificate, now time.Time) error {
	switch leaf := pair.Leaf; {
	case now.Before(leaf.NotBefore):
		return fmt.Errorf("TLS certificate is not valid before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	case now.After(leaf.NotAfter):
		return fmt.Errorf("TLS certificate has expired at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}

// Close stops reading the files. The certificate stays in force.
func (c *Certificate) Close() {
	if c != nil {
		c.files.Close()
	}
}

// Look reads the files now, see [watch.Files.Look].
func (c *Certificate) Look() {
	if c != nil {
		c.files.Look()
	}
}

// Config returns the TLS configuration of a server, nil for a nil Certificate. It has Go's defaults, TLS 1.2 as the lowest
// version, and HTTP/1.1 and HTTP/1.0 as its protocols: clients that offer HTTP/1.0 alone, such as curl --http1.0, would else get no connection.
func (c *Certificate) Config() *tls.Config {
	if c == nil {
		return nil
	}
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1", "http/1.0"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.inForce.Load(), nil },
	}
}

// Err returns why the current content of the files is not in force, or else why the certificate in force is not valid now. It returns
// nil when the content is in force and valid.
func (c *Certificate) Err() error {
	if c == nil {
		return nil
	}
	if err := c.files.Err(); err != nil {
		return err
	}
	return checkValidity(c.inForce.Load(), time.Now())
}

// Expires returns the end of the validity of the certificate in force, the zero time for a nil Certificate.
func (c *Certificate) Expires() time.Time {
	if c == nil {
		return time.Time{}
	}
	return c.inForce.Load().Leaf.NotAfter
}
