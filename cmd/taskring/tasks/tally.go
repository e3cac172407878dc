package tasks

import (
	"errors"
	"sync"

	"github.com/taskring/taskring/matching/task"
)

// tally keeps account of what became of the lines that were sent.
type tally struct {
	mu       sync.Mutex
	sent     int64 // lines handed to a batch
	added    int64 // surely added
	unknown  int64 // may have been added
	firstBad int64 // lowest line that is not surely added; 0 is none
	firstErr error // why
}

// account is what a tally has come to.
type account struct {
	// Added is how many tasks were surely added.
	Added int64 `json:"added"`
	// Resume is the first line that was not surely added: all before it were.
	Resume int64 `json:"resume_line"`
	// Behind is how many lines behind Resume were added all the same.
	Behind int64 `json:"added_behind"`
	// Unknown is how many lines may have been added: the answer was lost.
	Unknown int64 `json:"unknown"`
}

// took records that n further lines are about to be sent.
func (t *tally) took(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent += int64(n)
}

// settle records what became of the lines from first on, nil for added.
func (t *tally) settle(first int64, outcomes []error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, err := range outcomes {
		if err == nil {
			t.added++
			continue
		}
		if errors.Is(err, task.OutcomeUnknown) {
			t.unknown++
		}
		if line := first + int64(i); t.firstBad == 0 || line < t.firstBad {
			t.firstBad, t.firstErr = line, err
		}
	}
}

// failed returns why the first line that was not added was not, nil when all
// that was settled was added.
func (t *tally) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.firstErr
}

// sofar returns the account; it is final once every batch is settled. Lines are
// sent in order, so whatever lies before the lowest bad line was added.
func (t *tally) sofar() account {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := account{Added: t.added, Unknown: t.unknown, Resume: t.sent + 1}
	if t.firstBad > 0 {
		a.Resume = t.firstBad
		a.Behind = t.added - (a.Resume - 1)
	}
	return a
}
