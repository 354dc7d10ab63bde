package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"strikecache/refresh"
	"strikecache/snapshots"
)

var errNumber = errors.New("a frame refers to a snapshot that was not sent")

// receiver takes the frames of one child.
type receiver struct {
	replica *snapshots.Replica
	observe func(job, code string, took time.Duration)
	clock   func(refresh.Clock)
	status  func(Status)
	ready   func()
	heard   func() // after every frame

	sent []*snapshots.Snapshot // since the last frame that used some
	live bool                  // the child has told what was stored
}

// receive takes frames until the child ends or says why it will. It returns io.EOF when the child ended without a word.
func (r *receiver) receive(from io.Reader) error {
	for {
		k, head, body, err := readFrame(from)
		if err != nil {
			return err
		}
		if err := r.take(k, head, body); err != nil {
			return err
		}
		r.heard()
	}
}

func (r *receiver) take(k kind, head, body []byte) error {
	switch k {
	case frameClock:
		return with(head, func(c refresh.Clock) error { r.clock(c); return nil })
	case frameStatus:
		return with(head, func(s Status) error { r.status(s); return nil })
	case frameReady:
		r.live = true
		r.ready()
		return nil
	case frameFailed:
		return with(head, func(text string) error { return errors.New(text) })
	case frameObserved:
		return with(head, func(o observation) error { r.observe(o.Job, o.Code, time.Duration(o.Took)); return nil })
	case frameDates:
		return with(head, func(dates []string) error {
			if r.live {
				r.replica.Listed(dates)
			} else {
				r.replica.Opened(dates)
			}
			return nil
		})
	case frameWritten:
		return with(head, func(date string) error { r.replica.Written(date); return nil })
	case frameSnapshot:
		s, err := snapshots.Unpack(head, body)
		r.sent = append(r.sent, s)
		return err
	case frameRenewed:
		return with(head, r.renew)
	case framePublish:
		return with(head, r.publish)
	}
	return fmt.Errorf("unknown frame %q", k)
}

// with decodes a head.
func with[T any](head []byte, f func(T) error) error {
	var v T
	if err := json.Unmarshal(head, &v); err != nil {
		return fmt.Errorf("decode frame: %w", err)
	}
	return f(v)
}

func (r *receiver) renew(n renewal) error {
	defer func() { r.sent = nil }()
	if len(r.sent) != 1 {
		return errNumber
	}
	r.replica.Renewed(n.Date, r.sent[0], n.OnDisk)
	return nil
}

func (r *receiver) publish(p publication) error {
	defer func() { r.sent = nil }()
	editions := make(map[string]*snapshots.Edition, len(p.Editions))
	known := func(n int) bool { return n >= 0 && n < len(r.sent) }
	for resource, refs := range p.Editions {
		if !known(refs.Default) {
			return errNumber
		}
		e := &snapshots.Edition{Default: r.sent[refs.Default]}
		if refs.Variants != nil {
			e.Variants = make(map[string]*snapshots.Snapshot, len(refs.Variants))
		}
		for name, n := range refs.Variants {
			if !known(n) {
				return errNumber
			}
			e.Variants[name] = r.sent[n]
		}
		editions[resource] = e
	}
	if !r.live {
		return r.replica.Restore(p.Feed, editions)
	}
	return r.replica.Publish(p.Feed, editions)
}
