package snapshots

import (
	"errors"
	"fmt"
	"mime"
	"strings"
	"time"
)

// Form is an answer in another form than the envelope, such as CSV. It has no `meta` and no `usage`.
type Form struct {
	Name        string // what a client asks for, such as csv
	ContentType string
	Body        []byte // at least two bytes
}

// WithForms returns the snapshot with these forms only. Each form is a snapshot without an envelope, sealed in Identity and Gzip,
// because clients seldom ask for it, with entity tags of its own. WithForms keeps no body of a [Form].
func (s *Snapshot) WithForms(forms ...Form) (*Snapshot, error) {
	out := *s
	out.forms = nil
	for _, f := range forms {
		n := len(f.Body) - 1
		if n < 1 {
			return nil, fmt.Errorf("seal form %s: body has less than two bytes", f.Name)
		}
		sealed := s.newForm(f.Name, f.ContentType)
		if err := sealed.seal(f.Body[:n:n], f.Body[n:]); err != nil {
			return nil, fmt.Errorf("seal form %s: %w", f.Name, err)
		}
		out.forms = append(out.forms, sealed)
	}
	return &out, nil
}

// Form returns the snapshot of a form, nil if the answer does not have it. It does not allocate.
func (s *Snapshot) Form(name string) *Snapshot {
	for _, f := range s.forms {
		if f.form == name {
			return f
		}
	}
	return nil
}

// codings returns the codings that the snapshot is sealed in.
func (s *Snapshot) codings() (codings []Coding) {
	for c := range Codings {
		if s.Has(c) {
			codings = append(codings, c)
		}
	}
	return codings
}

// newForm returns a form of the answer without bodies.
func (s *Snapshot) newForm(name, contentType string) *Snapshot {
	return &Snapshot{Meta: s.Meta, ContentType: contentType, Lines: metaLines(&s.Meta), form: name, changed: s.changed, modified: s.modified, date: s.date}
}

// formOf returns a form with the bodies of f for the answer s, which may have another meta.
func (s *Snapshot) formOf(f *Snapshot) *Snapshot {
	form := s.newForm(f.form, f.ContentType)
	form.bodies, form.prefix, form.crc = f.bodies, f.prefix, f.crc
	form.setTags()
	return form
}

// parseForm adds a form from its stored bodies, of which identity is not stored. It keeps their memory.
func (s *Snapshot) parseForm(name, contentType string, bodies [Codings][]byte) (err error) {
	if _, _, err = mime.ParseMediaType(contentType); err != nil {
		return err
	}
	if bodies[Identity], err = decompress(Gzip, bodies[Gzip], MaxTransfer); err != nil {
		return err
	}
	n := len(bodies[Identity]) - 1
	if n < 1 {
		return errors.New("form has less than two bytes")
	}
	f := s.newForm(name, contentType)
	if err = f.adopt(bodies, n, bodies[Identity][n:], ""); err == nil {
		s.forms = append(s.forms, f)
	}
	return err
}

// metaLines returns what meta says of a form, as header field lines.
func metaLines(m *Meta) string {
	freshness := m.Freshness.State
	if m.Freshness.Reason != nil {
		freshness += "; reason=" + *m.Freshness.Reason
	}
	line := strings.NewReplacer("\r", "", "\n", "").Replace // the texts may come from another member of a fleet
	return "Access-Control-Expose-Headers: X-Source, X-As-Of, X-Freshness\r\nX-Source: " + line(m.Source) +
		"\r\nX-As-Of: " + m.AsOf.UTC().Format(time.RFC3339Nano) + "\r\nX-Freshness: " + line(freshness) + "\r\n"
}
