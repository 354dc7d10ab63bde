package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Flags are the flags of a fleet, in the form that the kong parser reads.
type Flags struct {
	NATS      string `name:"nats" help:"Join a fleet: URLs of the NATS servers with JetStream, comma-separated, such as nats://10.0.0.1:4222 or tls://user:password@host. One member of the fleet refreshes, all serve the same answers. Three servers, or five, each keep the files." placeholder:"URL"`
	Edge      bool   `help:"Serve the answers of the fleet and never refresh. --source and --source-name must be those of the fleet; of the other flags of a source, only --cboe-requests-per-minute counts."`
	NATSCreds string `name:"nats-creds" help:"Credentials file of the NATS user, as nsc writes it." type:"existingfile" placeholder:"FILE"`
	NATSCA    string `name:"nats-ca" help:"Certificates of the authorities that sign the NATS servers' certificates. Default: those of the system." type:"existingfile" placeholder:"FILE"`
}

// Check returns an error that names the flag and the values that are allowed.
func (f *Flags) Check() error {
	if f.NATS == "" {
		if f.Edge || f.NATSCA != "" || f.NATSCreds != "" {
			return errors.New("--edge, --nats-ca and --nats-creds need --nats")
		}
		return nil
	}
	for server := range strings.SplitSeq(f.NATS, ",") {
		if u, err := url.Parse(strings.TrimSpace(server)); err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Host == "" {
			return errors.New("--nats must be URLs such as nats://10.0.0.1:4222 or tls://host, comma-separated") // it may have a password
		}
	}
	return nil
}

// replicas returns how many NATS servers keep the files: an odd number, at most 5. It counts when the bucket is created.
func (f *Flags) replicas() int { return min(strings.Count(f.NATS, ",")|1, 5) }

const (
	// maxBucketBytes has room for about 8 years of dates, see server/deploy.
	maxBucketBytes = 4 << 30
	// leaseTTL is how long the pointer must stay the same before another member may take the lease.
	leaseTTL = 7 * time.Second
	// leaseUse is how long after it has last written the pointer a refresher may publish and ask the upstream.
	leaseUse = leaseTTL - time.Second
	// tickEvery is the time between two looks at the pointer.
	tickEvery = time.Second
	// callTimeout bounds one request to JetStream.
	callTimeout = 2 * time.Second
)

// connect returns a connection, which may not be made yet: the client tries for ever. The first try may take [callTimeout] for
// each server. The error is that of a wrong flag.
func (m *Member) connect() (*nats.Conn, error) {
	connected := func(conn *nats.Conn) {
		m.update(func(s *Status) { s.Connected, s.Reconnects = true, int64(conn.Stats().Reconnects) }) //nolint:gosec // G115: a count
	}
	f, opts := &m.cfg.Flags, []nats.Option{
		nats.Name("strikecache " + m.name),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.ReconnectBufSize(-1), // a message of before an outage must not be sent after it
		nats.Timeout(callTimeout), nats.PingInterval(callTimeout), nats.MaxPingsOutstanding(2), nats.FlusherTimeout(callTimeout),
		nats.ConnectHandler(connected), nats.ReconnectHandler(connected),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { m.update(func(s *Status) { s.Connected = false }) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { m.update(func(*Status) { m.down = err }) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { m.cfg.Log.Debug("nats", "err", err) }), // else nats.go prints it
	}
	if f.NATSCA != "" {
		opts = append(opts, nats.RootCAs(f.NATSCA))
	}
	if f.NATSCreds != "" {
		opts = append(opts, nats.UserCredentials(f.NATSCreds))
	}
	conn, err := nats.Connect(f.NATS, opts...)
	if err != nil {
		err = fmt.Errorf("--nats: %w", err)
	}
	return conn, err
}

// advice says in words of an operator what an error of NATS means. nats.go has no names for the last three.
var advice = map[error]string{
	nats.ErrNoResponders:                       "JetStream does not answer: start nats-server with --jetstream, and enable it for the account",
	jetstream.ErrJetStreamNotEnabled:           "JetStream is off: start nats-server with --jetstream",
	jetstream.ErrJetStreamNotEnabledForAccount: "JetStream is off for the account of the NATS user: enable it",
	&jetstream.APIError{ErrorCode: 10002}:      tooSmall,
	&jetstream.APIError{ErrorCode: 10047}:      tooSmall,
	&jetstream.APIError{ErrorCode: 10077}:      "the bucket is full, raise its max_bytes, or give the NATS server disk space",
}

const tooSmall = "JetStream has not enough storage for the bucket, which needs 4 GiB on each server"

// explain adds the advice for an error.
func (m *Member) explain(err error) error {
	m.mu.Lock()
	connected, down := m.status.Connected, m.down
	m.mu.Unlock()
	if !connected {
		return fmt.Errorf("no connection to NATS: %w", cmp.Or(down, nats.ErrDisconnected))
	}
	if denied := m.conn.LastError(); errors.Is(denied, nats.ErrPermissionViolation) && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)) {
		return fmt.Errorf("the NATS user may not use the bucket, allow it to publish to $JS.API.> and $KV.>: %w", denied)
	}
	for cause, words := range advice {
		if errors.Is(err, cause) {
			return fmt.Errorf("%s: %w", words, err)
		}
	}
	return err
}
