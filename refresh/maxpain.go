package refresh

import (
	"cmp"
	"slices"
	"sync"

	"github.com/goccy/go-json"

	"strikecache/compute"
	"strikecache/snapshots"
)

// painQuality is `meta.quality` of spx-max-pain.
type painQuality struct {
	Contracts struct {
		Listed  int         `json:"listed"`
		Used    int         `json:"used"`
		Skipped painSkipped `json:"skipped"`
	} `json:"contracts"`
	Calendar   *string `json:"calendar"`
	BadNumbers int     `json:"bad_numbers,omitempty"`
}

type painSkipped struct {
	compute.Skipped
	Settled int `json:"settled"`
}

func computeMaxPain(in *inputs) (*answer, error) {
	chain, err := in.chain()
	if err != nil {
		return nil, err
	}
	pains := compute.MaxPains(chain, in.calendar)
	a := answerOf(chain)
	dates := []compute.Date{chain.Session(in.calendar)}
	if a.variants, err = in.pain.texts(pains); err != nil {
		return nil, err
	}
	for _, p := range pains {
		dates = append(dates, p.Expiration)
	}
	if i := compute.DefaultMaxPain(pains); i >= 0 {
		a.byDefault = pains[i].Expiration.String()
	}
	q := painQuality{Calendar: compute.CalendarNote(dates...), BadNumbers: chain.BadNumbers}
	q.Contracts.Listed = chain.Listed
	q.Contracts.Used = compute.Unsettled(chain, in.calendar)
	q.Contracts.Skipped = painSkipped{chain.Skipped, len(chain.Contracts) - q.Contracts.Used}
	a.quality = q
	return a, nil
}

// painPieces holds the pieces of max pain that depend on open interest and strikes alone, with the values that they were made
// of. From one chain of a day to the next, hardly any of them changes.
type painPieces struct {
	mu     sync.Mutex
	sides  map[painKey]painPiece
	listed []compute.PainExpiration
	list   *snapshots.Piece // of listed
}

// painKey names a set of contracts: all of a date, or those of one settlement.
type painKey struct {
	expiration compute.Date
	settlement string // "" for all
}

type painPiece struct {
	of    compute.PainInterest
	piece *snapshots.Piece
}

// texts returns the JSON of each date. Its bytes are those of json.Marshal.
func (k *painPieces) texts(pains []*compute.MaxPain) (map[string]any, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	out, before := make(map[string]any, len(pains)), k.sides
	k.sides = make(map[painKey]painPiece, len(before))
	if len(pains) > 0 && (k.list == nil || !slices.Equal(k.listed, pains[0].Expirations)) {
		list, err := json.Marshal(pains[0].Expirations)
		if err != nil {
			return nil, err
		}
		if k.list, err = snapshots.Compress(list); err != nil {
			return nil, err
		}
		k.listed = pains[0].Expirations
	}
	for _, p := range pains {
		b := painText{pieces: k, before: before, date: p.Expiration}
		b.side("", struct {
			Symbol           string        `json:"symbol"`
			Spot             compute.Level `json:"spot"`
			Expiration       compute.Date  `json:"expiration"`
			Settlement       string        `json:"settlement"`
			DaysToExpiration int           `json:"days_to_expiration"`
			compute.PainMinimum
		}{p.Symbol, p.Spot, p.Expiration, p.Settlement, p.DaysToExpiration, p.PainMinimum}, &p.PainInterest)
		b.settlement(`,"by_settlement":{"am":`, "am", p.BySettlement.AM)
		b.settlement(`,"pm":`, "pm", p.BySettlement.PM)
		b.plain = append(b.plain, `},"expirations":`...)
		b.add(k.list)
		b.plain = append(b.plain, '}')
		b.add(nil)
		if b.err != nil {
			return nil, b.err
		}
		out[p.Expiration.String()] = &b.text
	}
	return out, nil
}

// painText is the JSON of a date under construction.
type painText struct {
	pieces *painPieces
	before map[painKey]painPiece // of the chain before
	date   compute.Date
	text   snapshots.Text
	plain  []byte // behind the last piece
	err    error
}

// add adds a piece behind the plain bytes.
func (b *painText) add(p *snapshots.Piece) {
	b.text = append(b.text, snapshots.Plain(b.plain))
	if b.plain = nil; p != nil {
		b.text = append(b.text, p)
	}
}

// settlement adds one of the two sides by settlement, which may be nil, behind a key.
func (b *painText) settlement(key, name string, side *compute.PainSide) {
	if b.plain = append(b.plain, key...); side == nil {
		b.plain = append(b.plain, "null"...)
		return
	}
	b.side(name, side.PainMinimum, &side.PainInterest)
	b.plain = append(b.plain, '}')
}

// side adds an object without its closing brace: the fields of first, and then those of the open interest.
func (b *painText) side(settlement string, first any, interest *compute.PainInterest) {
	encoded, err := json.Marshal(first)
	if err == nil {
		b.plain = append(append(b.plain, encoded[:len(encoded)-1]...), ',')
		var piece *snapshots.Piece
		if piece, err = b.interest(painKey{b.date, settlement}, interest); err == nil {
			b.add(piece)
		}
	}
	b.err = cmp.Or(b.err, err)
}

// interest returns the piece of the open interest: that of the chain before, or of another set of the date, if it has the
// same values.
func (b *painText) interest(key painKey, of *compute.PainInterest) (*snapshots.Piece, error) {
	all := painKey{expiration: key.expiration}
	for _, known := range []painPiece{b.pieces.sides[all], b.before[key]} {
		if known.piece != nil && slices.Equal(known.of.Curve, of.Curve) && slices.Equal(known.of.OpenInterest, of.OpenInterest) {
			b.pieces.sides[key] = known
			return known.piece, nil
		}
	}
	encoded, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	piece, err := snapshots.Compress(encoded[1 : len(encoded)-1])
	b.pieces.sides[key] = painPiece{*of, piece}
	return piece, err
}
