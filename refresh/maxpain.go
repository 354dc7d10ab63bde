package refresh

import "strikecache/compute"

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
	a.variants = map[string]any{}
	for _, p := range pains {
		dates = append(dates, p.Expiration)
		a.variants[p.Expiration.String()] = p
	}
	if i := compute.DefaultMaxPain(pains); i >= 0 {
		a.byDefault = pains[i].Expiration.String()
	}
	a.rare = func(expiration string) bool { return expiration != a.byDefault }
	q := painQuality{Calendar: compute.CalendarNote(dates...), BadNumbers: chain.BadNumbers}
	q.Contracts.Listed = chain.Listed
	q.Contracts.Used = compute.Unsettled(chain, in.calendar)
	q.Contracts.Skipped = painSkipped{chain.Skipped, len(chain.Contracts) - q.Contracts.Used}
	a.quality = q
	return a, nil
}
