package fleet

import (
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
	NATS   string `name:"nats" help:"Join a fleet: URLs of the NATS servers with JetStream, comma-separated, such as nats://10.0.0.1:4222 or tls://user:password@host. One member of the fleet refreshes, all serve the same answers. Three servers, or five, each keep the files." placeholder:"URL"`
	Edge   bool   `help:"Serve the answers of the fleet and never refresh. --source and --source-name must be those of the fleet; of the other flags of a source, only --cboe-requests-per-minute counts."`
	NATSCA string `name:"nats-ca" help:"Certificates of the authorities that sign the NATS servers' certificates. Default: those of the system." type:"existingfile" placeholder:"FILE"`
}

// Check returns an error that names the flag and the values that are allowed.
func (f *Flags) Check() error {
	switch {
	case f.Edge && f.NATS == "":
		return errors.New("--edge needs --nats")
	case f.NATS == "" && f.NATSCA != "":
		return errors.New("--nats-ca needs --nats")
	}
	for server := range strings.SplitSeq(f.NATS, ",") {
		if u, err := url.Parse(strings.TrimSpace(server)); f.NATS != "" && (err != nil || u.Scheme != "nats" && u.Scheme != "tls" || u.Host == "") {
			return errors.New("--nats must be URLs such as nats://10.0.0.1:4222 or tls://host, comma-separated") // it may have a password
		}
	}
	return nil
}

// replicas returns how many NATS servers keep the files: an odd number, at most 5. It counts when the stream is created.
func (f *Flags) replicas() int { return min(strings.Count(f.NATS, ",")|1, 5) }

const (
	// maxStreamBytes has room for about 6 years of dates that are kept for ever: 600 MB a year, see server/deploy.
	maxStreamBytes = 4 << 30
	// leaseTTL is how long nothing must be published before another member may take the lease.
	leaseTTL = 7 * time.Second
	// leaseUse is how long after its last message a refresher may publish and ask the upstream.
	leaseUse = leaseTTL - time.Second
	// tickEvery is the time between two looks at the lease.
	tickEvery = time.Second
	// callTimeout bounds one request to JetStream.
	callTimeout = 2 * time.Second
	// maxPart is the size of the parts of a file, in bytes. A part is smaller if the NATS server takes only smaller messages.
	maxPart = 512 << 10
)

// connect returns a connection, which may not be made yet: the client tries for ever. The first try may take [callTimeout] for
// each server. The error is that of a wrong flag.
func (m *Member) connect() (*nats.Conn, error) {
	opts := []nats.Option{
		nats.Name("strikecache " + m.name),
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(250 * time.Millisecond), nats.ReconnectJitter(100*time.Millisecond, 100*time.Millisecond),
		nats.ReconnectBufSize(-1), // a message of before an outage must not be sent after it
		nats.Timeout(callTimeout), nats.PingInterval(callTimeout), nats.MaxPingsOutstanding(2), nats.FlusherTimeout(callTimeout),
		nats.ConnectHandler(m.connected), nats.ReconnectHandler(m.connected),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { m.disconnected(err) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { m.update(func(*Status) { m.failure = err }) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { m.cfg.Log.Debug("nats", "err", err) }),
	}
	f := &m.cfg.Flags
	if f.NATSCA != "" {
		opts = append(opts, nats.RootCAs(f.NATSCA))
	}
	conn, err := nats.Connect(f.NATS, opts...)
	if err != nil {
		return nil, fmt.Errorf("--nats: %w", err)
	}
	return conn, nil
}

// errNoStream says that no refresher has joined the fleet yet, or that somebody has deleted the stream.
var errNoStream = errors.New("the fleet has no stream yet: this member waits for a refresher")

// open opens the stream. A member that may refresh creates it if it is missing.
func (m *Member) open(ctx context.Context, js jetstream.JetStream) (jetstream.Stream, error) {
	name := "strikecache-" + m.cfg.Source
	stream, err := js.Stream(ctx, name)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return stream, err
	}
	if m.cfg.Edge {
		return nil, errNoStream
	}
	return js.CreateStream(ctx, jetstream.StreamConfig{
		Name: name, Subjects: []string{m.subject(">")}, MaxMsgsPerSubject: 1, MaxBytes: maxStreamBytes,
		Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage, Replicas: m.cfg.replicas(), AllowDirect: true,
	})
}

// subject returns the subject of a message of the fleet.
func (m *Member) subject(name string) string { return "strikecache." + m.cfg.Source + "." + name }

// partName returns what the subject of a part of a file ends with.
func partName(path string, part uint64) string {
	return fmt.Sprintf("%s%s.%d", fileSubject, path, part)
}
