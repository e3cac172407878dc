package bench

import (
	"slices"
	"time"
)

// spans are durations in nanoseconds.
type spans []int64

// between returns how long each task took from one point of its life to
// another; tasks that lack one of them are left out.
func (l *ledger) between(from, to func(*record) int64) spans {
	s := make(spans, 0, len(l.records))
	for i := range l.records {
		if a, b := from(&l.records[i]), to(&l.records[i]); a > 0 && b > 0 {
			s = append(s, b-a)
		}
	}
	slices.Sort(s)
	return s
}

// micros returns the p-th part, 0 to 1, of sorted spans in microseconds: the
// smallest value that at least that part of all do not exceed. nil when there
// are none.
func (s spans) micros(p float64) *figure {
	if len(s) == 0 {
		return nil
	}
	rank := int(p*float64(len(s)) + 0.999999)
	us := rounded(float64(s[min(max(rank, 1), len(s))-1]) / 1e3)
	return &us
}

// last returns the latest of one point in the tasks' lives.
func (l *ledger) last(of func(*record) int64) time.Duration {
	var latest int64
	for i := range l.records {
		latest = max(latest, of(&l.records[i]))
	}
	return time.Duration(latest)
}

// perSecond returns n over a time; nil when no time passed.
func perSecond(n int, d time.Duration) *figure {
	if d <= 0 {
		return nil
	}
	return ratio(float64(n), d.Seconds())
}

// ratio returns a/b, nil when there is no b.
func ratio(a, b float64) *figure {
	if b == 0 {
		return nil
	}
	r := rounded(a / b)
	return &r
}

func calledAt(r *record) int64   { return r.called.Load() }
func answeredAt(r *record) int64 { return r.answered.Load() }
func receivedAt(r *record) int64 { return r.received.Load() }
