package fleet

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/goccy/go-json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// pointer is the one value of a fleet that changes.
type pointer struct {
	Holder   string `json:"holder"`             // name of the member that holds the lease
	Term     uint64 `json:"term"`               // number of the lease; each has a higher one than the lease before
	Manifest string `json:"manifest"`           // digest; "" before the first publication
	Released bool   `json:"released,omitempty"` // the holder has given the lease up

	sequence uint64 // of its message, 0 if there is none
	at       time.Time
}

// manifest is what a fleet serves.
type manifest struct {
	Origin      Origin            `json:"origin"`
	PublishedAt time.Time         `json:"published_at"`
	Resources   map[string]Served `json:"resources"`
	Dates       map[string]string `json:"dates"` // digest of the list of each date: the digest of each of its files, by path
}

const pointerKey = "pointer"

// bucket is where NATS keeps a fleet: a key-value bucket with the pointer, and an object store with the blobs, by digest.
type bucket struct {
	name    string
	kv      jetstream.KeyValue
	objects jetstream.ObjectStore
	stream  jetstream.Stream      // of objects
	leader  nats.JetStreamContext // asks the NATS server that leads the bucket: others may be behind
}

// open opens the bucket. A member that may refresh creates it.
func (m *Member) open(ctx context.Context) (*bucket, error) {
	js, err := jetstream.New(m.conn, jetstream.WithDefaultTimeout(callTimeout))
	if err != nil {
		return nil, err
	}
	b := &bucket{name: "strikecache-" + m.cfg.Source}
	if b.leader, err = m.conn.JetStream(nats.MaxWait(callTimeout)); err != nil {
		return nil, err
	}
	if _, err = js.Stream(ctx, b.name); err == nil {
		return nil, fmt.Errorf("the fleet is of an older kind: stop its members, delete the JetStream stream %s, and start all with this version", b.name)
	}
	if _, err = js.KeyValue(ctx, b.name); err == nil {
		_, err = js.ObjectStore(ctx, b.name)
	}
	if missing := errors.Is(err, jetstream.ErrBucketNotFound); missing && m.cfg.Edge {
		return nil, errors.New("the fleet has no bucket yet: this member waits for a refresher")
	} else if missing {
		_, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{Bucket: b.name, MaxBytes: maxBucketBytes, Replicas: m.cfg.replicas()})
		if err == nil || errors.Is(err, jetstream.ErrBucketExists) {
			_, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: b.name, Replicas: m.cfg.replicas()})
		}
	}
	if err == nil || errors.Is(err, jetstream.ErrBucketExists) {
		b.kv, err = js.KeyValue(ctx, b.name)
	}
	if err == nil {
		b.objects, err = js.ObjectStore(ctx, b.name)
	}
	if err == nil {
		b.stream, err = js.Stream(ctx, "OBJ_"+b.name)
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

// maxJSON bounds a manifest or a list, which takes much more memory when it is decoded. A manifest of 20 years takes 500 kB.
const maxJSON = 1 << 20

// get returns a blob of at most limit bytes. The caller checks that it has the digest.
func (b *bucket) get(ctx context.Context, digest string, limit int64) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*callTimeout)
	defer cancel()
	blob, err := b.objects.Get(ctx, digest)
	if err != nil {
		return nil, err
	}
	defer blob.Close() //nolint:errcheck // it was read
	body, err := io.ReadAll(io.LimitReader(blob, limit+1))
	switch {
	case err == nil && int64(len(body)) > limit:
		return nil, errSize
	case errors.Is(err, jetstream.ErrDigestMismatch):
		return nil, errCorrupt
	}
	return body, err
}

// getJSON gets a list or a manifest, and checks it.
func (b *bucket) getJSON(ctx context.Context, digest string, value any) error {
	body, err := b.get(ctx, digest, maxJSON)
	if err == nil && (digestOf(body) != digest || json.Unmarshal(body, value) != nil) {
		err = errCorrupt
	}
	return err
}

func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// list returns the blobs that are whole, with the times that they had before. It removes what puts and removals left that did not end: a put without
// room leaves a message that names chunks which are not there.
func (b *bucket) list(ctx context.Context, before map[string]time.Time) (map[string]time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*callTimeout)
	defer cancel()
	found, err := b.objects.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return before, fmt.Errorf("list the blobs: %w", err)
	}
	info, err := b.stream.Info(ctx, jetstream.WithSubjectFilter("$O."+b.name+".>"))
	if err != nil {
		return before, fmt.Errorf("list the messages: %w", err)
	}
	blobs, rest := map[string]time.Time{}, info.State.Subjects
	for _, one := range found {
		if chunks := "$O." + b.name + ".C." + one.NUID; rest[chunks] == uint64(one.Chunks) {
			blobs[one.Name] = cmp.Or(before[one.Name], time.Now())
			delete(rest, chunks)
			delete(rest, b.named(one.Name))
		}
	}
	for subject := range rest {
		err = cmp.Or(err, b.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)))
	}
	return blobs, err
}

// named returns the subject of the message that names a blob.
func (b *bucket) named(digest string) string {
	return "$O." + b.name + ".M." + base64.URLEncoding.EncodeToString([]byte(digest))
}

// remove removes a blob.
func (b *bucket) remove(ctx context.Context, digest string) error {
	info, err := b.objects.GetInfo(ctx, digest)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil
	}
	if err == nil { // Delete would put a message, for which a full bucket has no room
		err = b.stream.Purge(ctx, jetstream.WithPurgeSubject(b.named(digest)))
	}
	if err == nil {
		err = b.stream.Purge(ctx, jetstream.WithPurgeSubject("$O."+b.name+".C."+info.NUID))
	}
	return err
}
