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
	leadSubject    = "lead"
	currentSubject = "current"
	fileSubject    = "file." // and the path, a dot and the number of the part, from 0
)

// The header of a message.
const (
	leaseHeader  = "Strikecache-Lease"
	digestHeader = "Strikecache-SHA256" // [File.SHA256]
	partsHeader  = "Strikecache-Parts"  // how many parts the file has
)

// send publishes a message, if this member holds the lease and knows the last message of the stream. It adds to the header. It
// returns the sequence number of the message.
func (s *link) send(ctx context.Context, subject string, header nats.Header, data []byte) (uint64, error) {
	m, l := s.m, s.m.lead
	msg := &nats.Msg{Subject: subject, Header: header, Data: data}
	header.Set(leaseHeader, strconv.FormatUint(l.number, 10))
	ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
	defer cancel()
	var err error
	for range 2 {
		if !l.synced || m.remaining() < leaseUse/2 {
			if err := s.renew(ctx); err != nil {
				return 0, err
			}
		}
		if !l.synced { // somebody else has published, or the answer to an earlier message was lost
			info, err := s.stream.Info(ctx)
			if err != nil {
				return 0, err
			}
			l.last, l.synced = info.State.LastSeq, true
		}
		if !m.Holds() {
			return 0, errLost
		}
		var ack *jetstream.PubAck
		if ack, err = s.js.PublishMsg(ctx, msg, jetstream.WithExpectLastSequence(l.last)); err == nil {
			l.last = ack.Sequence
			return ack.Sequence, nil
		}
		if l.synced = false; !isWrongSequence(err) {
			break
		}
	}
	return 0, fmt.Errorf("publish %s: %w", subject, err)
}

// publish publishes files that are not stored yet, and names the current answers with those among them.
func (s *link) publish(ctx context.Context, p publication) (err error) {
	m := s.m
	defer func() {
		m.update(func(*Status) { m.ahead = err == nil })
		p.done <- err
	}()
	if !m.leads() {
		return errLost
	}
	serving, named := m.cfg.Process.Serving(), false
	for _, f := range p.files {
		if err := s.putBytes(ctx, File{f.Path, f.SHA256}, f.Body); err != nil {
			return err
		}
		if f.Product != "" {
			serving[f.Product], named = Served{File{f.Path, f.SHA256}, f.Freshness}, true
		}
	}
	if !named {
		return nil
	}
	return s.name(ctx, serving)
}

// put publishes the files of the current answers, and then names them. It leaves out an answer whose file cannot be read. A
// file that was replaced meanwhile belongs to answers that are not current yet: the next call follows soon.
func (s *link) put(ctx context.Context) error {
	m := s.m
	m.mu.Lock()
	ahead := m.ahead
	m.mu.Unlock()
	if !m.leads() || ahead {
		return nil
	}
	serving := m.cfg.Process.Serving()
	for name, served := range serving {
		if served.Path == "" || m.has(served.File) {
			continue
		}
		if err := s.putFile(ctx, served.Path); err != nil {
			return err
		}
		if m.has(served.File) {
			continue
		}
		if now := m.cfg.Store.Digest(served.Path); now != "" && now != served.SHA256 {
			return nil
		}
		serving[name] = Served{}
	}
	return s.name(ctx, serving)
}

// name publishes which answers are current.
func (s *link) name(ctx context.Context, serving map[string]Served) error {
	m, l := s.m, s.m.lead
	resources, err := json.Marshal(serving)
	if err != nil || bytes.Equal(resources, l.serving) {
		return err
	}
	value, err := json.Marshal(Current{PublishedAt: time.Now().UTC(), Resources: serving})
	if err == nil {
		l.current, err = s.send(ctx, m.subject(currentSubject), nats.Header{}, value)
	}
	if err == nil {
		l.serving = resources
	}
	return err
}

// has says whether the stream has a file.
func (m *Member) has(f File) bool {
	o := m.objects[f.Path]
	return !o.refused && o.digest == f.SHA256
}

// putOne publishes the newest of the changed files.
func (s *link) putOne(ctx context.Context) error {
	newest := ""
	s.m.mu.Lock()
	for path := range s.m.dirty {
		newest = max(newest, path)
	}
	s.m.mu.Unlock()
	return s.putFile(ctx, newest)
}

// putFile publishes a file, or removes it from the stream if it was removed.
func (s *link) putFile(ctx context.Context, path string) (err error) {
	m := s.m
	m.mu.Lock()
	delete(m.dirty, path) // a change from now on marks it again
	m.mu.Unlock()
	defer func() {
		if err != nil {
			m.mark(path)
		}
	}()
	file, digest, err := m.cfg.Store.Bytes(path)
	switch {
	case !m.Holds():
		return errLost
	case errors.Is(err, snapshots.ErrNoSnapshot):
		upTo := m.objects[path].last + 1
		delete(m.objects, path)
		return s.stream.Purge(ctx, jetstream.WithPurgeSubject(m.subject(fileSubject+path+".*")), jetstream.WithPurgeSequence(upTo))
	case err != nil:
		m.cfg.Log.Error("fleet: file not published", "file", path, "err", err)
		return nil // the same would happen again
	}
	return s.putBytes(ctx, File{path, digest}, file)
}

// putBytes publishes a file, unless the stream has it. A file that no member would take is left out.
func (s *link) putBytes(ctx context.Context, f File, file []byte) error {
	m, path, digest := s.m, f.Path, f.SHA256
	switch {
	case m.has(f):
		return nil
	case len(file) > snapshots.MaxTransfer:
		m.cfg.Log.Error("fleet: file not published", "file", path, "bytes", len(file), "limit", snapshots.MaxTransfer)
		return nil // the same would happen again
	}
	size := max(1024, min(maxPart, int(m.conn.MaxPayload())-4096))              // a header is smaller than that
	o := object{digest: digest, parts: uint64(max(1, (len(file)+size-1)/size))} //nolint:gosec // G115: a count
	header := nats.Header{digestHeader: {digest}, partsHeader: {strconv.FormatUint(o.parts, 10)}}
	for i := range o.parts {
		part := file[:min(size, len(file))]
		file = file[len(part):]
		seq, err := s.send(ctx, m.partSubject(path, i), header, part)
		if err != nil {
			return err
		}
		if i > 0 && seq != o.last+1 {
			return fmt.Errorf("publish %s: another message is between its parts", path)
		}
		o.last = seq
	}
	m.objects[path] = o
	m.update(func(status *Status) { status.Put++ })
	return nil
}

// refuse counts and logs a message that is refused.
func (s *link) refuse(name, reason string, err error) {
	s.m.cfg.Log.Warn("fleet: object refused", "object", fmt.Sprintf("%.200s", name), "reason", reason, "err", err)
	s.m.update(func(status *Status) { status.Refused[reason]++ })
}
