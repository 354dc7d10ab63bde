package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// pointer is the one value of a fleet that changes.
type pointer struct {
	Holder   string `json:"holder"`   // name of the member that holds the lease
	Term     uint64 `json:"term"`     // number of the lease; each has a higher one than the lease before
	Manifest string `json:"manifest"` // digest; "" before the first publication

	sequence uint64    // of its message, 0 if there is none
	at       time.Time // by the clock of the NATS server
}

// manifest is what a fleet serves.
type manifest struct {
	Origin      Origin            `json:"origin"`
	PublishedAt time.Time         `json:"published_at"`
	Resources   map[string]Served `json:"resources"`
	Dates       map[string]string `json:"dates"` // digest of the list of each date: the digest of each of its files, by path
}

const pointerKey = "pointer"

// bucket is where NATS keeps a fleet: a key-value bucket with the pointer, and one with the blobs, which may become full. Chunk n of a blob has the
// key DIGEST.n. The last one is shorter than [chunkBytes], and is put first: a blob has no gap unless NATS has lost it.
type bucket struct {
	name   string
	kv     jetstream.KeyValue
	files  jetstream.KeyValue
	stream jetstream.Stream      // of files
	leader nats.JetStreamContext // asks the NATS server that leads the bucket: others may be behind
}

// open opens the bucket. A member that may refresh creates it.
func (m *Member) open(ctx context.Context) (*bucket, error) {
	b := &bucket{name: "strikecache-" + m.cfg.Source}
	js, err := jetstream.New(m.conn, jetstream.WithDefaultTimeout(callTimeout))
	if err == nil {
		b.leader, err = m.conn.JetStream(nats.MaxWait(callTimeout))
	}
	open := func(name string, limit int64) (kv jetstream.KeyValue) {
		if err != nil {
			return nil
		}
		if kv, err = js.KeyValue(ctx, name); errors.Is(err, jetstream.ErrBucketNotFound) && m.cfg.Edge {
			err = errors.New("the fleet has no bucket yet: this member waits for a refresher")
		} else if errors.Is(err, jetstream.ErrBucketNotFound) {
			kv, err = js.CreateOrUpdateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: name, MaxBytes: limit, Replicas: m.cfg.replicas()})
		}
		return kv
	}
	b.files, b.kv = open(b.name+"-files", maxBucketBytes), open(b.name, -1)
	if err == nil {
		b.stream, err = js.Stream(ctx, "KV_"+b.files.Bucket())
	}
	return b, err
}

// pointer returns the pointer. One that cannot be read has only its message.
func (b *bucket) pointer(ctx context.Context) (p pointer, err error) {
	msg, err := b.leader.GetLastMsg("KV_"+b.name, "$KV."+b.name+"."+pointerKey, nats.Context(ctx))
	if errors.Is(err, nats.ErrMsgNotFound) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("read the pointer: %w", err)
	}
	if json.Unmarshal(msg.Data, &p) != nil {
		p = pointer{}
	}
	p.sequence, p.at = msg.Sequence, msg.Time
	return p, nil
}

// swap replaces the pointer whose message has p.sequence, and returns the new sequence number.
func (b *bucket) swap(ctx context.Context, p pointer) (uint64, error) {
	value, err := json.Marshal(p)
	if err != nil {
		return 0, err
	}
	return b.kv.Update(ctx, pointerKey, value, p.sequence)
}

var (
	errCorrupt = errors.New("not what its name says")
	errSize    = errors.New("too large")
	errLost    = errors.New("the lease is lost")
)

const (
	// chunkBytes is the size of a message. A NATS server takes 1 MiB, unless it was told otherwise.
	chunkBytes = 128 << 10
	// maxJSON bounds a manifest or a list, which takes much more memory when it is decoded. A manifest of 20 years takes 500 kB.
	maxJSON = 1 << 20
)

func chunk(digest string, n int) string { return digest + "." + strconv.Itoa(n) }

// get returns a blob of at most limit bytes. The caller checks that it has the digest.
func (b *bucket) get(ctx context.Context, digest string, limit int) (body []byte, err error) {
	for n := 0; ; n++ {
		next, err := b.files.Get(ctx, chunk(digest, n))
		if err != nil {
			return nil, err
		}
		if body = append(body, next.Value()...); len(body) > limit {
			return nil, errSize
		}
		if len(next.Value()) < chunkBytes {
			return body, nil
		}
	}
}

// put puts a blob, and calls renew after each chunk. Who puts one twice changes nothing.
func (b *bucket) put(digest string, body []byte, renew func() error) (err error) {
	for n := len(body) / chunkBytes; n >= 0 && err == nil; n-- {
		if _, err = b.files.Put(context.Background(), chunk(digest, n), body[n*chunkBytes:min((n+1)*chunkBytes, len(body))]); err == nil {
			err = renew()
		}
	}
	return err
}

// remove removes a blob. Purge of the bucket would put a message, for which a full one has no room.
func (b *bucket) remove(digest string) error {
	return b.stream.Purge(context.Background(), jetstream.WithPurgeSubject("$KV."+b.files.Bucket()+"."+digest+".*"))
}

// list returns for each blob, by digest, whether it is whole.
func (b *bucket) list() (whole map[string]bool, err error) {
	prefix, chunks, last := "$KV."+b.files.Bucket()+".", map[string]int{}, map[string]int{}
	info, err := b.stream.Info(context.Background(), jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return nil, fmt.Errorf("list the blobs: %w", err)
	}
	for subject := range info.State.Subjects {
		digest, number, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
		n, _ := strconv.Atoi(number)
		chunks[digest]++
		last[digest] = max(last[digest], n)
	}
	whole = map[string]bool{}
	for digest, n := range last {
		whole[digest] = chunks[digest] == n+1
	}
	return whole, nil
}

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
