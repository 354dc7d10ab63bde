package fleet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/goccy/go-json"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"strikecache/snapshots"
)

// The subjects of a fleet, without what they begin with.
const (
	leaseSubject   = "lease"
	aliveSubject   = "alive" // without data: the lease is free
	currentSubject = "current"
	fileSubject    = "file." // and the path, a dot and the number of the part, from 0
)

// The header of a message.
const (
	leaseHeader  = "Strikecache-Lease"
	digestHeader = "Strikecache-SHA256" // what [snapshots.Store.Digest] returns
	partsHeader  = "Strikecache-Parts"  // how many parts the file has
)

// send publishes a message under the lease, and so renews it, if this member holds the lease and knows the last message of the
// stream. It adds to the header. It returns the sequence number of the message.
func (s *link) send(ctx context.Context, name string, header nats.Header, data []byte) (uint64, error) {
	l := s.lease
	header.Set(leaseHeader, strconv.FormatUint(l.number, 10))
	msg := &nats.Msg{Subject: s.subject(name), Header: header, Data: data}
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	var err error
	for range 2 {
		if err = s.sync(ctx); err != nil {
			break
		}
		asked := time.Now()
		var ack *jetstream.PubAck
		if ack, err = s.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequence(l.last)); err == nil {
			l.last = ack.Sequence
			s.extend(asked, l.last)
			l.expiry.Reset(leaseUse - time.Since(asked))
			return ack.Sequence, nil
		}
		if l.synced = false; !isWrongSequence(err) {
			break
		}
	}
	return 0, fmt.Errorf("publish %s: %w", name, err)
}

// sync learns the last message of the stream, unless this member knows it: somebody else has published, or the answer to an
// earlier message was lost.
func (s *link) sync(ctx context.Context) error {
	l := s.lease
	if !l.synced {
		info, err := s.stream.Info(ctx) // first: if another member has taken the lease since, the next message is refused
		if err != nil {
			return err
		}
		begun, err := s.newestOf(ctx, leaseSubject)
		if err != nil {
			return err
		}
		if begun.Sequence != l.number {
			l.lose()
		}
		l.last, l.synced = info.State.LastSeq, true
	}
	if l.valid.Err() != nil || !s.Holds() { // this process may have been stopped for a while
		l.lose()
		return errLost
	}
	return nil
}

// publish publishes files that are not stored yet, and names the current answers with those among them.
func (s *link) publish(ctx context.Context, p publication) (err error) {
	defer func() {
		s.update(func(*Status) { s.ahead = err == nil })
		p.done <- err
	}()
	if !s.publishes {
		return errLost
	}
	serving, named := s.cfg.Process.Serving(), false
	for _, f := range p.files {
		if err := s.putBytes(ctx, f.Path, f.SHA256, f.Body); err != nil {
			return err
		}
		if f.Answer != nil && f.Path == snapshots.CurrentPath(f.Answer.Meta.Endpoint) {
			serving[f.Answer.Meta.Endpoint], named = Served{f.SHA256, f.Answer.Meta.Freshness}, true
		}
	}
	if !named {
		return nil
	}
	return s.nameCurrent(ctx, serving)
}

// put publishes the files of the current answers, and then names them. It leaves out an answer whose file cannot be read. A
// file that was replaced meanwhile belongs to answers that are not current yet: the next call follows soon.
func (s *link) put(ctx context.Context) error {
	s.mu.Lock()
	ahead := s.ahead
	s.mu.Unlock()
	if !s.publishes || ahead {
		return nil
	}
	serving := s.cfg.Process.Serving()
	for name, served := range serving {
		path := snapshots.CurrentPath(name)
		if served.SHA256 == "" || s.has(path, served.SHA256) {
			continue
		}
		if err := s.putFile(ctx, path); err != nil {
			return err
		}
		if s.has(path, served.SHA256) {
			continue
		}
		if now := s.cfg.Store.Digest(path); now != "" && now != served.SHA256 {
			return nil
		}
		serving[name] = Served{}
	}
	return s.nameCurrent(ctx, serving)
}

// nameCurrent publishes which answers are current.
func (s *link) nameCurrent(ctx context.Context, serving map[string]Served) error {
	l := s.lease
	resources, err := json.Marshal(serving)
	if err != nil || bytes.Equal(resources, l.serving) {
		return err
	}
	value, err := json.Marshal(Current{PublishedAt: time.Now().UTC(), Resources: serving})
	if err == nil {
		l.current, err = s.send(ctx, currentSubject, nats.Header{}, value)
	}
	if err == nil {
		l.serving = resources
	}
	return err
}

// has says whether the stream has a file.
func (s *link) has(path, digest string) bool {
	o := s.objects[path]
	return !o.refused && o.digest == digest
}

// putOne publishes one of the changed files.
func (s *link) putOne(ctx context.Context) error {
	s.mu.Lock()
	path := greatest(s.dirty)
	s.mu.Unlock()
	return s.putFile(ctx, path)
}

// greatest returns the greatest path, "" if there is none: objects come first, then current answers, then the newest dates.
func greatest(paths map[string]bool) (path string) {
	for one := range paths {
		path = max(path, one)
	}
	return path
}

// putAgain lets the member publish its own file again, and then the current answers: others may have passed over the file.
func (s *link) putAgain(path string) {
	s.mark(path)
	s.lease.serving = nil
	s.Announce()
}

// putFile publishes a file, or removes it from the stream if it was removed.
func (s *link) putFile(ctx context.Context, path string) (err error) {
	s.mu.Lock()
	delete(s.dirty, path) // a change from now on marks it again
	s.mu.Unlock()
	defer func() {
		if err != nil {
			s.mark(path)
		}
	}()
	file, digest, err := s.cfg.Store.Bytes(path)
	switch {
	case !s.Holds():
		return errLost
	case errors.Is(err, snapshots.ErrNoSnapshot):
		upTo := s.objects[path].last + 1
		delete(s.objects, path)
		return s.stream.Purge(ctx, jetstream.WithPurgeSubject(s.subject(fileSubject+path+".*")), jetstream.WithPurgeSequence(upTo))
	case err != nil:
		s.cfg.Log.Error("fleet: file not published", "file", path, "err", err)
		return nil // permanent: do not retry
	}
	return s.putBytes(ctx, path, digest, file)
}

// putBytes publishes a file, unless the stream has it. A file that no member would take is left out.
func (s *link) putBytes(ctx context.Context, path, digest string, file []byte) error {
	switch {
	case s.has(path, digest):
		return nil
	case len(file) > snapshots.MaxTransfer:
		s.cfg.Log.Error("fleet: file not published", "file", path, "bytes", len(file), "limit", snapshots.MaxTransfer)
		return nil // permanent: do not retry
	}
	size := max(1024, min(maxPart, int(s.conn.MaxPayload())-4096))              // a header is smaller than that
	o := object{digest: digest, parts: uint64(max(1, (len(file)+size-1)/size))} //nolint:gosec // G115: a count
	header := nats.Header{digestHeader: {digest}, partsHeader: {strconv.FormatUint(o.parts, 10)}}
	for i := range o.parts {
		part := file[:min(size, len(file))]
		file = file[len(part):]
		seq, err := s.send(ctx, partName(path, i), header, part)
		if err != nil {
			return err
		}
		if i > 0 && seq != o.last+1 {
			return fmt.Errorf("publish %s: another message is between its parts", path)
		}
		o.last = seq
	}
	s.objects[path] = o
	s.update(func(status *Status) { status.Put++ })
	return nil
}

// refuse counts and logs a message that is refused.
func (s *link) refuse(name, reason string, err error) {
	s.cfg.Log.Warn("fleet: object refused", "object", fmt.Sprintf("%.200s", name), "reason", reason, "err", err)
	s.update(func(status *Status) { status.Refused[reason]++ })
}
