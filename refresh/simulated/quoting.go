package simulated

import "math"

// maker is how an underlying's options are quoted.
type maker struct {
	least   float64 // width of the cheapest, USD
	slope   float64 // width per USD of time value
	deep    float64 // the most that intrinsic value adds, USD
	deepAt  float64 // intrinsic value, as a share of the spot, that adds all of it
	fine    int     // tick below 3 USD, cents
	coarse  int     // tick from there on, cents
	amWider float64 // AM-settled series are quoted so much wider
}

// width returns how far bid and ask of a contract lie apart. own is the contract's noise, years its time to
// expiration: the market in the far years is very wide (2026-08-11: 5 points at 2.3 years, 300 at 5.4).
func (k *maker) width(timeValue, intrinsic, spot, years, own float64, am bool) float64 {
	w := k.least + k.slope*timeValue
	if am {
		w *= k.amWider
	}
	if years > 1.9 {
		w *= math.Exp(1.3 * (years - 1.9))
	}
	if intrinsic > 0 {
		w += k.deep * (0.2 + 0.8*own) * min(1, intrinsic/(k.deepAt*spot))
	}
	return min(w, 0.04*spot)
}

// quote returns bid and ask, in cents, around a theoretical price. The bid of a contract that is worth less than
// a tick is 0; the ask is always above the bid.
func (k *maker) quote(price, width float64) (bid, ask int) {
	half := min(0.5*width, 0.03+0.5*price)
	bid = int((price - half) * 100)
	if tick := k.tick(bid); bid < tick {
		bid = 0
	} else {
		bid -= bid % tick
	}
	ask = int(math.Ceil((price+half)*100 - 1e-9))
	tick := k.tick(ask)
	if over := ask % tick; over > 0 {
		ask += tick - over
	}
	return bid, max(ask, bid+tick, tick)
}

func (k *maker) tick(cents int) int {
	if cents < 300 {
		return k.fine
	}
	return k.coarse
}

// quote returns bid and ask of one side of a strike, in cents. Quotes of contracts in the money are wide and lie a
// little off; key is the contract's noise.
func (s *chainSpec) quote(m *smile, v *value, right int, key noise, am bool) (bid, ask int) {
	price, own := v.price[right], 0.0
	intrinsic := price - v.timeValue
	if intrinsic > 0 {
		own = key.child(9).unit()
	}
	width := s.maker.width(v.timeValue, intrinsic, m.spot, m.years, own, am)
	if intrinsic > 0 {
		price += 0.06 * width * (key.child(10).unit() - 0.5)
	}
	return s.maker.quote(price, width)
}
