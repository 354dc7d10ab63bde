package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
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
	for _, old := range []string{b.name, "OBJ_" + b.name} {
		if err == nil && func() error { _, err := js.Stream(ctx, old); return err }() == nil {
			err = fmt.Errorf("the fleet is of an older kind: stop its members, delete the JetStream stream %s, and start all with this version", old)
		}
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

func digestOf(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
