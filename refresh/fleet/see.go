package fleet

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"strikecache/snapshots"
)

// object is a file in the stream.
type object struct {
	digest  string // in its header
	parts   uint64
	last    uint64 // sequence number of the last part; the others are right before it
	bytes   int    // of all parts
	refused bool
}

// watch returns the header of the newest message of each subject, then those of all later messages, and the error that ends the
// watch. It does not use the ordered consumer of nats.go, which begins again by itself, after pauses of up to 10 seconds.
func (s *link) watch(ctx context.Context) (messages <-chan jetstream.Msg, broken <-chan error, stop func(), err error) {
	consumer, err := s.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckNonePolicy, HeadersOnly: true, MemoryStorage: true, Replicas: 1, InactiveThreshold: 30 * time.Second,
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: s.subject(">"),
	})
	if err != nil {
		return nil, nil, nil, err
	}
	out, failed := make(chan jetstream.Msg), make(chan error, 1)
	consuming, err := consumer.Consume(func(msg jetstream.Msg) {
		select {
		case out <- msg:
		case <-ctx.Done():
		}
	}, jetstream.PullHeartbeat(callTimeout), jetstream.PullExpiry(5*callTimeout), jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
		select {
		case failed <- err:
		default:
		}
	}))
	if err != nil {
		return nil, nil, nil, err
	}
	return out, failed, consuming.Stop, nil
}

// see takes the header of the next message.
func (s *link) see(ctx context.Context, msg jetstream.Msg) error {
	meta, err := msg.Metadata()
	if err != nil {
		return err
	}
	if s.delivered++; meta.Sequence.Consumer != s.delivered {
		return errors.New("the watch has lost a message")
	}
	seq := meta.Sequence.Stream
	s.seen = seq
	s.update(func(*Status) {
		if seq > s.heardOf {
			s.heard, s.heardOf = time.Now(), seq
		}
	})
	name := strings.TrimPrefix(msg.Subject(), s.subject(""))
	if name == leaseSubject {
		if s.number = seq; s.lease != nil && seq > s.lease.number {
			s.lease.lose() // somebody else has taken it
		}
		s.update(func(status *Status) { status.Lease = seq })
		if s.joined {
			return nil
		}
		return s.join(ctx)
	}
	lease, _ := strconv.ParseUint(msg.Headers().Get(leaseHeader), 10, 64) // 0 is no lease
	switch foreign := s.checkLease(lease, seq); {
	case strings.HasPrefix(name, fileSubject):
		s.seeFile(name[len(fileSubject):], msg, seq, foreign)
	case name != currentSubject || s.lease != nil && seq <= s.lease.current:
	case foreign != nil || s.refreshing():
		if foreign != nil {
			s.refuse(name, reasonLease, foreign)
		}
		if s.lease != nil {
			s.lease.serving = nil // publishes its own again
			s.Announce()
		}
	default:
		s.unread = true
		return s.apply(ctx)
	}
	return nil
}

// checkLease returns an error if a message was not published by the refresher. The stream keeps only the message with which
// the newest lease began. So the lease of a message may be newer than the newest one that the watch has delivered.
func (s *link) checkLease(lease, seq uint64) error {
	switch {
	case lease == 0:
		return errors.New("published under no lease")
	case lease < s.number || lease >= seq:
		return fmt.Errorf("published under lease %d, the newest is %d", lease, s.number)
	}
	return nil
}

// seeFile takes the header of a part of a file. The last part announces the file.
func (s *link) seeFile(name string, msg jetstream.Msg, seq uint64, foreign error) {
	header := msg.Headers()
	path, number := name, ""
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		path, number = name[:dot], name[dot+1:]
	}
	if s.cfg.Edge && snapshots.IsObject(path) {
		return // an edge takes no documents
	}
	part, err := strconv.ParseUint(number, 10, 64)
	whole := s.addPart(part, seq, header)
	o := object{digest: header.Get(digestHeader), last: seq, bytes: s.bytes}
	o.parts, _ = strconv.ParseUint(header.Get(partsHeader), 10, 64) // 0 is no part
	if seq < s.objects[path].last {
		return
	}
	if foreign == nil && err == nil && part+1 < o.parts { // the file before is no longer whole
		delete(s.objects, path)
		delete(s.backlog, path)
		if s.publishes {
			s.putAgain(path)
		}
		return
	}
	if !whole && seq <= s.first {
		return // superseded: ignore
	}
	reason := ""
	switch invalid := snapshots.CheckPath(path); {
	case invalid != nil:
		reason, foreign = reasonPath, invalid
	case foreign != nil:
		reason = reasonLease
	case err != nil || o.digest == "" || part+1 != o.parts || !whole:
		reason, foreign = reasonCorrupt, errIncomplete
	case o.bytes > snapshots.MaxTransfer:
		reason, foreign = reasonSize, fmt.Errorf("%d bytes, the limit is %d", o.bytes, snapshots.MaxTransfer)
	}
	if o.refused = reason != ""; o.refused {
		s.refuse(path, reason, foreign)
	}
	s.objects[path] = o
	delete(s.backlog, path)
	switch stored := s.cfg.Store.Digest(path); {
	case s.publishes && stored != "" && !s.has(path, stored):
		s.putAgain(path)
	case !s.refreshing() && !o.refused && o.digest != stored:
		s.backlog[path] = true
	}
}

// addPart counts the bytes of a part of a file, and says whether the watch has delivered all parts up to it. The parts of a file
// are published one right after the other.
func (s *link) addPart(part, seq uint64, header nats.Header) (whole bool) {
	bytes, _ := strconv.Atoi(header.Get(nats.MsgSize)) // JetStream writes it
	if part == 0 {
		s.firstPart, s.bytes = seq, 0
	}
	s.bytes += bytes
	return seq == s.firstPart+part
}

// apply makes the answers current that the fleet serves, all at the same instant, when the watch has delivered their files. It
// first stores these files, and leaves out an answer whose file is refused or was replaced: a newer "current" follows.
func (s *link) apply(ctx context.Context) error {
	if !s.unread || !s.joined || s.lease != nil {
		return nil
	}
	msg, err := s.newestOf(ctx, currentSubject)
	if err != nil || msg.Sequence > s.seen {
		return err
	}
	s.unread = false
	lease, _ := strconv.ParseUint(msg.Header.Get(leaseHeader), 10, 64)
	if s.checkLease(lease, msg.Sequence) != nil {
		return nil // there is none; or see has refused it
	}
	var current Current
	if err := json.Unmarshal(msg.Data, &current); err != nil {
		s.refuse(currentSubject, reasonCorrupt, err)
		return nil
	}
	for name, served := range current.Resources {
		path := snapshots.CurrentPath(name)
		if s.has(path, served.SHA256) && s.cfg.Store.Digest(path) != served.SHA256 {
			if err := s.load(ctx, path); err != nil {
				return err
			}
		}
		if s.cfg.Store.Digest(path) != served.SHA256 {
			current.Resources[name] = Served{}
		}
	}
	if err := s.cfg.Process.Apply(current.Resources); err != nil {
		return fmt.Errorf("make the answers of the fleet current: %w", err)
	}
	if msg.Sequence > s.first { // else the answers were there before this member looked
		s.update(func(status *Status) { status.Lag = max(0, time.Since(current.PublishedAt.Local())) })
	}
	return nil
}

var errIncomplete = errors.New("parts of the file are missing")

// load stores a file of the stream, unless it must be refused. The error is that of the connection.
func (s *link) load(ctx context.Context, path string) error {
	o := s.objects[path]
	file, err := s.fetch(ctx, path, o)
	if err == nil {
		err = s.cfg.Process.Accept(path, o.digest, file)
	}
	switch reason := reasonFor(err); {
	case reason != "":
		s.refuse(path, reason, err)
		o.refused = true
		s.objects[path] = o
	case err != nil:
		return fmt.Errorf("store %s: %w", path, err)
	default:
		s.update(func(status *Status) { status.Applied++ })
	}
	delete(s.backlog, path)
	return nil
}

// fetch gets the parts of a file. [jetstream.ErrMsgNotFound] says that the file was replaced or removed since the watch delivered
// it, or that a server of a cluster is behind. A new link learns what is there.
func (s *link) fetch(ctx context.Context, path string, o object) (file []byte, err error) {
	for i := range o.parts {
		msg, err := s.stream.GetMsg(ctx, o.last+1-o.parts+i)
		if err != nil {
			return nil, err
		}
		if msg.Subject != s.subject(partName(path, i)) || msg.Header.Get(digestHeader) != o.digest || len(file)+len(msg.Data) > o.bytes {
			return nil, errIncomplete
		}
		file = append(file, msg.Data...)
	}
	return file, nil
}

// reasonFor returns why a file is refused, and "" for another error.
func reasonFor(err error) string {
	for cause, reason := range map[error]string{
		snapshots.ErrPath: reasonPath, snapshots.ErrNewerFormat: reasonFormat, snapshots.ErrForeign: reasonForeign,
		snapshots.ErrOlder: reasonOlder, snapshots.ErrTorn: reasonCorrupt, errIncomplete: reasonCorrupt,
	} {
		if errors.Is(err, cause) {
			return reason
		}
	}
	return ""
}
