package file

import "time"

const (
	// unfinishedFactor is how much longer a file has to hold still whose end looks
	// unfinished.
	unfinishedFactor = 10
	// restlessAfter is when a file that never holds still is reported.
	restlessAfter = time.Minute
)

// sight is what a look at the file showed. It is comparable.
type sight struct {
	content    [32]byte // its SHA-256
	err        string   // why it cannot be read; empty when it can
	unfinished bool     // more may be on its way
}

// verdict is what to do after a look.
type verdict int

const (
	rest     verdict = iota // nothing new
	wait                    // something new that may not be whole
	judge                   // something new that has held still: load it
	restless                // it has not held still for long: say so, and wait on
)

// settler decides when a file has held still. It is pure.
//
//	          new sight                held still
//	rest --------------> waiting ----------------------> rest (judge)
//	  ^                    |  ^ |
//	  +-- judged sight ----+  +-+ another sight: wait anew
type settler struct {
	settle  time.Duration
	judged  sight
	pending sight
	waiting bool
	since   time.Time // pending was seen first
	began   time.Time // waiting
}

// see takes what a look at now showed and returns what to do, and after wait and
// restless when to look again at the latest.
func (s *settler) see(now time.Time, seen sight) (verdict, time.Duration) {
	if seen == s.judged {
		s.waiting = false
		return rest, 0
	}
	if !s.waiting {
		s.waiting, s.began = true, now
		s.pending, s.since = seen, now
	}
	if seen != s.pending {
		s.pending, s.since = seen, now
	}
	need := s.settle
	if seen.unfinished {
		need *= unfinishedFactor
	}
	still := now.Sub(s.since)
	switch {
	case still >= need:
		s.judged, s.waiting = seen, false
		return judge, 0
	case now.Sub(s.began) >= max(restlessAfter, 2*need):
		return restless, need - still
	}
	return wait, need - still
}
