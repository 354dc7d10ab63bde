package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"strikecache/snapshots"
)

// object is a file in the stream.
type object struct {
	digest  string // in its header
	parts   uint64
	last    uint64 // sequence number of the last part; the others are right before it
	tries   int    // how often a part of it was not there
	refused bool
}

// watch returns the headers of the messages that this member has not seen yet, and the error that ends the watch. It does not
// use the ordered consumer of nats.go, which begins again by itself, after pauses of up to 10 seconds.
func (s *link) watch(ctx context.Context) (messages <-chan jetstream.Msg, broken <-chan error, stop func(), err error) {
	cfg := jetstream.ConsumerConfig{
		AckPolicy: jetstream.AckNonePolicy, HeadersOnly: true, MemoryStorage: true, Replicas: 1, InactiveThreshold: 30 * time.Second,
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: s.m.subject(">"),
	}
	if s.m.seen > 0 {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, s.m.seen+1
	}
	consumer, err := s.stream.CreateConsumer(ctx, cfg)
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
	m := s.m
	meta, err := msg.Metadata()
	if err != nil {
		return err
	}
	if s.delivered++; meta.Sequence.Consumer != s.delivered {
		return errors.New("the watch has lost a message")
	}
	seq := meta.Sequence.Stream
	m.seen = seq
	name := strings.TrimPrefix(msg.Subject(), m.subject(""))
	if name == leadSubject {
		if m.term = seq; m.lead != nil && seq > m.lead.number {
			s.release(ctx) // somebody else has taken the lease
		}
		m.update(func(status *Status) { status.Lease = seq })
		if m.joined {
			return nil
		}
		begun, err := s.last(ctx, leadSubject)
		if err != nil {
			return err
		}
		return s.join(begun)
	}
	lease, _ := strconv.ParseUint(msg.Headers().Get(leaseHeader), 10, 64) // 0 is no lease
	switch foreign := s.checkLease(lease, seq); {
	case strings.HasPrefix(name, fileSubject):
		s.seeFile(name[len(fileSubject):], msg, seq, foreign)
	case name != currentSubject || m.lead != nil && seq <= m.lead.current:
	case foreign != nil || m.leads():
		if foreign != nil {
			s.refuse(name, reasonLease, foreign)
		}
		if m.lead != nil {
			m.lead.serving = nil // publishes its own again
			m.Announce()
		}
	default:
		m.unread = true
		return s.apply(ctx)
	}
	return nil
}

// checkLease returns an error if a message was not published by the refresher. The stream keeps only the message with which
// the newest lease began. So the lease of a message may be newer than the newest one that this member has seen.
func (s *link) checkLease(lease, seq uint64) error {
	switch {
	case lease == 0:
		return errors.New("published under no lease")
	case lease < s.m.term || lease >= seq:
		return fmt.Errorf("published under lease %d, the newest is %d", lease, s.m.term)
	}
	return nil
}

// seeFile takes the header of a part of a file. The last part announces the file.
func (s *link) seeFile(name string, msg jetstream.Msg, seq uint64, foreign error) {
	m, header := s.m, msg.Headers()
	path, number := name, ""
	if dot := strings.LastIndexByte(name, '.'); dot >= 0 {
		path, number = name[:dot], name[dot+1:]
	}
	part, err := strconv.ParseUint(number, 10, 64)
	bytes := s.size(part, seq, header)
	o := object{digest: header.Get(digestHeader), last: seq}
	o.parts, _ = strconv.ParseUint(header.Get(partsHeader), 10, 64) // 0 is no part
	if foreign == nil && err == nil && part+1 < o.parts || seq < m.objects[path].last {
		return
	}
	reason := ""
	switch invalid := snapshots.CheckPath(path); {
	case invalid != nil:
		reason, foreign = reasonPath, invalid
	case foreign != nil:
		reason = reasonLease
	case err != nil || o.digest == "" || part+1 != o.parts || o.parts > seq:
		reason, foreign = reasonCorrupt, errIncomplete
	case o.parts > maxParts:
		reason, foreign = reasonSize, fmt.Errorf("%d parts, the limit is %d", o.parts, maxParts)
	case bytes > snapshots.MaxTransfer:
		reason, foreign = reasonSize, fmt.Errorf("%d bytes, the limit is %d", bytes, snapshots.MaxTransfer)
	}
	if o.refused = reason != ""; o.refused {
		s.refuse(path, reason, foreign)
	}
	m.objects[path] = o
	delete(m.backlog, path)
	switch stored := m.cfg.Store.Digest(path); {
	case m.leads() && stored != "" && !m.has(File{path, stored}):
		m.mark(path) // publishes its own again
	case !m.leads() && !o.refused && o.digest != stored && (!m.cfg.Edge || !snapshots.IsObject(path)):
		m.backlog[path] = true
	}
}

// size returns the bytes of a file up to one of its parts, 0 if the watch does not know them. The parts of a file are published
// one right after the other.
func (s *link) size(part, seq uint64, header nats.Header) int {
	bytes, _ := strconv.Atoi(header.Get(nats.MsgSize)) // JetStream writes it
	switch {
	case part == 0:
		s.m.firstPart, s.m.bytes = seq, bytes
	case seq == s.m.firstPart+part:
		s.m.bytes += bytes
	default:
		return 0
	}
	return s.m.bytes
}

const (
	// inFlux is how long apply waits for a file that was replaced since the current answers were published. Then it makes the
	// other answers current.
	inFlux = 2 * time.Second
	// retryEvery is the time between two tries to get what is not there yet: a NATS server of a cluster may be behind.
	retryEvery = 100 * time.Millisecond
	// maxTries is how often a member tries to get a part that the stream should have.
	maxTries = 50
)

// retry tries again soon.
func (s *link) retry() {
	if s.again == nil {
		s.again = time.After(retryEvery)
	}
}

// read reads the newest message with the current answers.
func (s *link) read(ctx context.Context) error {
	m := s.m
	msg, err := s.last(ctx, currentSubject)
	if err != nil {
		return err
	}
	m.unread = false
	lease, _ := strconv.ParseUint(msg.Header.Get(leaseHeader), 10, 64)
	if msg.Sequence == 0 || s.checkLease(lease, msg.Sequence) != nil {
		return nil // there is none; or see refuses it
	}
	var current Current
	if err := json.Unmarshal(msg.Data, &current); err != nil {
		s.refuse(currentSubject, reasonCorrupt, err)
		return nil
	}
	if m.wanted == nil {
		m.wantedAt = time.Now()
	}
	m.wanted, m.wantedSeq = &current, msg.Sequence
	return nil
}

// apply stores the files of the wanted answers and makes these answers current, all at the same instant. It leaves out an
// answer whose file is refused.
func (s *link) apply(ctx context.Context) error {
	m := s.m
	if !m.joined || m.lead != nil {
		return nil
	}
	if m.unread {
		if err := s.read(ctx); err != nil {
			return err
		}
	}
	if m.wanted == nil {
		return nil
	}
	served := maps.Clone(m.wanted.Resources)
	if err := s.loadAll(ctx, served); err != nil {
		return err
	}
	waits := false
	for name, one := range served {
		if one.Path != "" && m.cfg.Store.Digest(one.Path) != one.SHA256 {
			waits = waits || !m.objects[one.Path].refused
			served[name] = Served{}
		}
	}
	if waits && time.Since(m.wantedAt) < inFlux {
		s.retry() // the new file, or a newer "current", follows
		return nil
	}
	if err := m.cfg.Process.Follow(served); err != nil {
		return fmt.Errorf("make the answers of the fleet current: %w", err)
	}
	lag := max(0, time.Since(m.wanted.PublishedAt.Local()))
	m.wanted, m.incomplete = nil, waits
	if m.wantedSeq > s.first { // else the answers were there before this member looked
		m.update(func(status *Status) { status.Lag = lag })
	}
	return nil
}

// loadAll stores the files of answers, side by side.
func (s *link) loadAll(ctx context.Context, served map[string]Served) error {
	type result struct {
		path string
		err  error
	}
	m, results := s.m, make(chan result, len(served))
	var group errgroup.Group
	group.SetLimit(8)
	for _, one := range served {
		if o := m.objects[one.Path]; one.Path != "" && m.has(one.File) && m.cfg.Store.Digest(one.Path) != one.SHA256 {
			group.Go(func() error {
				results <- result{one.Path, s.load(ctx, one.Path, o)}
				return nil
			})
		}
	}
	_ = group.Wait() // the errors are in the results
	close(results)
	for r := range results {
		if err := s.settle(ctx, r.path, r.err); err != nil {
			return err
		}
	}
	return nil
}

var (
	errIncomplete = errors.New("parts of the file are missing")
	errTooLarge   = fmt.Errorf("over %d bytes", snapshots.MaxTransfer)
)

// load gets the parts of a file and stores it. It may be called by several goroutines.
func (s *link) load(ctx context.Context, path string, o object) error {
	var file []byte
	for i := range o.parts {
		msg, err := s.stream.GetMsg(ctx, o.last+1-o.parts+i)
		switch {
		case err != nil:
			return err
		case msg.Subject != s.m.partSubject(path, i) || msg.Header.Get(digestHeader) != o.digest:
			return errIncomplete
		case len(file)+len(msg.Data) > snapshots.MaxTransfer:
			return errTooLarge
		}
		file = append(file, msg.Data...)
	}
	return s.m.cfg.Process.Accept(path, o.digest, file)
}

// nextToLoad returns the path of the backlog that was tried least, of equals the newest.
func (m *Member) nextToLoad() (next string) {
	for path := range m.backlog {
		if less := m.objects[path].tries - m.objects[next].tries; next == "" || less < 0 || less == 0 && path > next {
			next = path
		}
	}
	return next
}

// settle takes the result of load. The error is that of the connection.
func (s *link) settle(ctx context.Context, path string, err error) error {
	m := s.m
	o := m.objects[path]
	reason := reasonFor(err)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		last, failed := s.last(ctx, fileSubject+path+".*") // of any part: the last part of what replaces it may not be there yet
		if failed != nil {
			return failed
		}
		o.tries++
		m.objects[path] = o
		switch {
		case last.Sequence > o.last || last.Sequence == 0 && o.tries == maxTries: // what replaced it is announced soon, or it was removed
			delete(m.objects, path)
			delete(m.backlog, path)
			return nil
		case o.tries < maxTries: // the servers that were asked may be behind, also one that has just begun to lead
			if m.objects[m.nextToLoad()].tries >= o.tries {
				s.retry()
			}
			return nil
		}
		reason, err = reasonCorrupt, errIncomplete
	}
	switch {
	case reason != "":
		s.refuse(path, reason, err)
		o.refused = true
		m.objects[path] = o
	case err != nil:
		return fmt.Errorf("store %s: %w", path, err)
	default:
		m.unread, m.incomplete = m.unread || m.incomplete, false
		m.update(func(status *Status) { status.Applied++ })
	}
	delete(m.backlog, path)
	return nil
}

// reasonFor returns why a file is refused, and "" for another error.
func reasonFor(err error) string {
	for reason, causes := range map[string][]error{
		reasonPath: {snapshots.ErrPath}, reasonSize: {errTooLarge}, reasonFormat: {snapshots.ErrNewerFormat},
		reasonForeign: {snapshots.ErrForeign}, reasonOlder: {snapshots.ErrOlder}, reasonCorrupt: {snapshots.ErrTorn, errIncomplete},
	} {
		if slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(err, cause) }) {
			return reason
		}
	}
	return ""
}
