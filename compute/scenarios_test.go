package compute_test

import (
	"math"
	"testing"

	"strikecache/compute"
)

func convention(t *testing.T, r compute.GammaResult, name string) compute.Convention {
	t.Helper()
	for _, c := range r.Data.Conventions {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no convention %s", name)
	return compute.Convention{}
}

func full(bid, ask, iv, gamma, openInterest, volume float64) compute.Quote {
	q := quoted(bid, ask, openInterest)
	q.IV, q.Gamma, q.Volume = iv, gamma, volume
	return q
}

func TestConventions(t *testing.T) {
	nan := math.NaN()
	rows := []row{
		{"SPXW260821C07100000", full(0, 0, 0.2, 0.0021, 10, 100)},
		{"SPXW260821P06900000", full(0, 0, 0.3, 0.0011, 6, nan)},
		{"SPXW260821P07100000", full(0, 0, 0, nan, 5, 7)}, // used: it shares its strike's volatility
		{"SPXW260821C07200000", full(0, 0, 0.2, 0.9, 0, 1e6)},
		{"SPXW260811C07000000", full(0, 0, 0.2, 0.5, 1000, 1e6)}, // settled
	}
	r := exposure(t, index(7000, closing), rows...)
	v := func(iv float64) float64 { return iv * math.Sqrt(years(ten)) }
	up, down := dollarsOf(7000, gammaOf(7000, 7100, v(0.2))), dollarsOf(7000, gammaOf(7000, 6900, v(0.3)))

	model := convention(t, r, "model")
	near(t, "model", model.Net, 5*up-6*down, 1e-3)
	near(t, "data", r.Data.Net, 5*up-6*down, 1e-3)
	near(t, "model flip", model.Flip, float64(*r.Data.Flip), 0)

	p := convention(t, r, "published_gamma")
	near(t, "published gamma", p.Net, dollarsOf(7000, 10*0.0021-6*0.0011), 1e-6)
	isNull(t, "published gamma flip", p.Flip)

	// Each contract's own iv, iv 0 left out, 8 weekdays from 2026-08-11 (included) to 2026-08-21 (excluded).
	w := math.Sqrt(8.0 / 262)
	perfiliev := convention(t, r, "perfiliev")
	near(t, "perfiliev", perfiliev.Net,
		10*dollarsOf(7000, gammaOf(7000, 7100, 0.2*w))-6*dollarsOf(7000, gammaOf(7000, 6900, 0.3*w)), 1e-3)

	volume := convention(t, r, "volume_weighted")
	near(t, "volume", volume.Net, 100*up-7*up, 1e-3)
	for _, c := range r.Data.Conventions {
		if c.Note == "" {
			t.Errorf("%s has no note", c.Name)
		}
	}
}

// Perfiliev's T counts weekdays from the session date, also exchange holidays, at least one.
func TestPerfilievDays(t *testing.T) {
	for _, c := range []struct {
		asOf, symbol string
		days         float64
	}{
		{"2026-08-11T15:00:00Z", "SPXW260811C07000000", 1}, // 0 weekdays
		{"2026-08-11T15:00:00Z", "SPXW260812C07000000", 1},
		{"2026-08-14T15:00:00Z", "SPXW260817C07000000", 1}, // Friday to Monday
		{"2026-08-15T15:00:00Z", "SPXW260817C07000000", 1}, // Saturday: the session date is the Friday
		{"2026-09-04T15:00:00Z", "SPXW260908C07000000", 2}, // Labor Day counts
		{"2026-08-11T15:00:00Z", "SPXW260818C07000000", 5},
		{"2026-08-11T15:00:00Z", "SPX260821C07000000", 8},
		{"2026-08-11T15:00:00Z", "SPXW270811C07000000", 261},
	} {
		r := exposure(t, index(7000, c.asOf), row{c.symbol, published(0.2, 10)})
		want := 10 * dollarsOf(7000, gammaOf(7000, 7000, 0.2*math.Sqrt(c.days/262)))
		near(t, c.symbol+" from "+c.asOf, convention(t, r, "perfiliev").Net, want, 1e-9*want)
	}
}
