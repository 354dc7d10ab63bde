package compute_test

import (
	"math"
	"math/big"
	"testing"
)

// A Black formula on 640-bit numbers, to judge the double precision one. Only d1 and d2 of at most about 16 are
// asked of it: the series for N(x) loses x²/2 · log2(e) bits, 185 of them there.
const bigPrecision = 640

// pi to 100 digits.
const bigPi = "3.1415926535897932384626433832795028841971693993751058209749445923078164062862089986280348253421170679"

func newBig(x float64) *big.Float { return new(big.Float).SetPrec(bigPrecision).SetFloat64(x) }

func bigAdd(x, y *big.Float) *big.Float { return newBig(0).Add(x, y) }
func bigSub(x, y *big.Float) *big.Float { return newBig(0).Sub(x, y) }
func bigMul(x, y *big.Float) *big.Float { return newBig(0).Mul(x, y) }
func bigQuo(x, y *big.Float) *big.Float { return newBig(0).Quo(x, y) }

// negligible says that a term no longer changes a sum.
func negligible(term, sum *big.Float) bool {
	return term.Sign() == 0 || term.MantExp(nil) < sum.MantExp(nil)-bigPrecision
}

// bigExp is e^x by Taylor's series of x/2^k, squared k times.
func bigExp(x *big.Float) *big.Float {
	const k = 20
	small := newBig(0).SetMantExp(x, -k)
	sum, term := newBig(1), newBig(1)
	for n := 1.0; !negligible(term, sum); n++ {
		term = bigQuo(bigMul(term, small), newBig(n))
		sum = bigAdd(sum, term)
	}
	for range k {
		sum = bigMul(sum, sum)
	}
	return sum
}

// bigLog is ln x by Halley's method, which triples the digits a step.
func bigLog(x *big.Float) *big.Float {
	guess, _ := x.Float64()
	y := newBig(math.Log(guess))
	for range 3 {
		e := bigExp(y)
		y = bigAdd(y, bigMul(newBig(2), bigQuo(bigSub(x, e), bigAdd(x, e))))
	}
	return y
}

func bigDensity(x *big.Float) *big.Float {
	pi, _ := newBig(0).SetString(bigPi)
	return bigQuo(bigExp(bigMul(newBig(-0.5), bigMul(x, x))), newBig(0).Sqrt(bigMul(newBig(2), pi)))
}

// bigNormal is N(x) = 1/2 + φ(x)·(x + x³/3 + x⁵/(3·5) + …).
func bigNormal(x *big.Float) *big.Float {
	square := bigMul(x, x)
	sum, term := newBig(0).Set(x), newBig(0).Set(x)
	for n := 3.0; !negligible(term, sum); n += 2 {
		term = bigQuo(bigMul(term, square), newBig(n))
		sum = bigAdd(sum, term)
	}
	return bigAdd(newBig(0.5), bigMul(bigDensity(x), sum))
}

// bigBlack holds the undiscounted values of a call and a put and what their errors depend on.
type bigBlack struct {
	call, put  float64 // nearest doubles
	d1         float64
	n1, n2     float64 // F·N(±d1) and K·N(±d2) of the out-of-the-money side
	vegaTimesV float64 // F·φ(d1)·v: the change of the value for a relative change of v
	gamma      float64 // at spot = F, undiscounted: φ(d1)/(F·v)
}

func newBigBlack(f, k, v float64) bigBlack {
	bf, bk, bv := newBig(f), newBig(k), newBig(v)
	d1 := bigAdd(bigQuo(bigLog(bigQuo(bf, bk)), bv), bigMul(newBig(0.5), bv))
	d2 := bigSub(d1, bv)
	n1, n2 := bigMul(bf, bigNormal(d1)), bigMul(bk, bigNormal(d2))
	call := bigSub(n1, n2)
	put := bigAdd(call, bigSub(bk, bf))
	if k < f {
		n1, n2 = bigSub(bf, n1), bigSub(bk, n2)
	}
	density := bigDensity(d1)
	return bigBlack{call: double(call), put: double(put), d1: double(d1), n1: double(n1), n2: double(n2),
		vegaTimesV: double(bigMul(bigMul(bf, density), bv)), gamma: double(bigQuo(density, bigMul(bf, bv)))}
}

func double(x *big.Float) float64 {
	y, _ := x.Float64()
	return y
}

// The reference itself is held to 30 digits that mpmath computed with 60.
func TestBigReference(t *testing.T) {
	for _, c := range []struct {
		name string
		got  *big.Float
		want string
	}{
		{"e", bigExp(newBig(1)), "2.71828182845904523536028747135"},
		{"ln 2", bigLog(newBig(2)), "0.693147180559945309417232121458"},
		{"N(1)", bigNormal(newBig(1)), "0.841344746068542948585232545632"},
		{"N(-10)", bigNormal(newBig(-10)), "7.61985302416052606597334325160e-24"},
	} {
		want, _ := newBig(0).SetString(c.want)
		if off := double(bigQuo(bigSub(c.got, want), want)); !(math.Abs(off) < 1e-29) {
			t.Errorf("%s = %s, want %s", c.name, c.got.Text('g', 32), c.want)
		}
	}
}
