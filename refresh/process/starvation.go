package process

import "time"

// starvation watches whether the process gets time.
type starvation struct {
	at          time.Time
	ran, waited float64
	hungry      int // stretches
}

const (
	// hungerStretch is how long the process is watched at a time.
	hungerStretch = time.Second
	// hungerShare of a stretch is what it runs at most, and its threads wait at least for the rest, when it is hungry.
	hungerShare = 0.1
	// hungerLimit is how many hungry stretches without one that is not are starvation.
	hungerLimit = 3
)

// look says whether the process starves. It is to be called again and again.
func (s *starvation) look() bool {
	now := time.Now()
	took := now.Sub(s.at).Seconds()
	if took < hungerStretch.Seconds() {
		return false
	}
	ran, waiting, known := waited()
	return s.judge(now, took, ran, waiting, known)
}

func (s *starvation) judge(now time.Time, took, ran, waiting float64, known bool) bool {
	first := s.at.IsZero()
	gotLittle := ran-s.ran < hungerShare*took && waiting-s.waited > (1-hungerShare)*took
	s.at, s.ran, s.waited = now, ran, waiting
	switch {
	case !known || first || !gotLittle:
		s.hungry = 0
	default:
		s.hungry++
	}
	return s.hungry >= hungerLimit
}
