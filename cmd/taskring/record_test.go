package main

import (
	"sync"
	"testing"

	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// record is what the answers to all calls say of each task, by its payload.
// Time is the number of the record's events.
type record struct {
	mu    sync.Mutex
	clock int64
	tasks map[string]*life
	wrong []string
}

// life is what is known of one task.
type life struct {
	accepted   bool  // the add was answered with OK
	refused    bool  // the server said that it is surely not stored
	attempted  int   // completions that were called and not refused
	finishedAt int64 // when a completion was answered with OK; 0 is never
	grants     int
}

func newRecord() *record { return &record{tasks: map[string]*life{}} }

func (r *record) now() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock
}

// event moves time on and returns a task's life. Call it with mu held.
func (r *record) event(key string) *life {
	r.clock++
	l := r.tasks[key]
	if l == nil {
		l = &life{}
		r.tasks[key] = l
	}
	return l
}

// added notes how an add was answered. A broken connection says nothing.
func (r *record) added(key string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.event(key)
	known := wire.FromStatus(err)
	l.accepted = err == nil
	l.refused = err != nil && !wire.Guessed(known) && task.ReasonOf(known) != task.OutcomeUnknown
}

// granted notes that a poll, which was called at a time, brought a task.
func (r *record) granted(key string, polledAt int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.event(key)
	l.grants++
	if l.finishedAt > 0 && l.finishedAt <= polledAt {
		r.wrong = append(r.wrong, key+" was completed before the poll was called that brought it")
	}
}

func (r *record) completing(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event(key).attempted++
}

func (r *record) refusedComplete(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.event(key).attempted--
}

func (r *record) completed(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.event(key); l.finishedAt == 0 {
		l.finishedAt = r.clock
	}
}

// sums are what the record comes to.
//
// Unknown adds may have been stored or not; uncertain completions, whose answer
// was lost to the end, may have been done or not. Neither proves anything.
type sums struct{ accepted, unknown, finished, uncertain, twice int }

// judge compares the lives with the promises, once the queue is empty, and
// returns what is wrong.
func (r *record) judge() (sums, []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var s sums
	for key, l := range r.tasks {
		switch {
		case l.accepted:
			s.accepted++
		case !l.refused:
			s.unknown++
		}
		switch {
		case l.finishedAt > 0:
			s.finished++
		case l.attempted > 0:
			s.uncertain++
		}
		if l.grants > 1 {
			s.twice++
		}
		if l.accepted && l.attempted == 0 {
			r.wrong = append(r.wrong, key+" was accepted and is lost")
		}
		if l.refused && l.grants > 0 {
			r.wrong = append(r.wrong, key+" was refused and handed out")
		}
	}
	return s, r.wrong
}

// TestRecordJudges shows that the record finds what it is there to find.
func TestRecordJudges(t *testing.T) {
	for name, c := range map[string]struct {
		do    func(*record)
		wrong int
	}{
		"all is well": {func(r *record) {
			r.added("a", nil)
			r.granted("a", r.now())
			r.completing("a")
			r.completed("a")
		}, 0},
		"lost": {func(r *record) { r.added("b", nil) }, 1},
		"lost after a refused completion": {func(r *record) {
			r.added("b", nil)
			r.granted("b", r.now())
			r.completing("b")
			r.refusedComplete("b")
		}, 1},
		"handed out after the completion": {func(r *record) {
			r.added("a", nil)
			r.granted("a", r.now())
			r.completing("a")
			r.completed("a")
			r.granted("a", r.now())
		}, 1},
		"polled before, received after": {func(r *record) {
			r.added("a", nil)
			before := r.now()
			r.granted("a", r.now())
			r.completing("a")
			r.completed("a")
			r.granted("a", before)
		}, 0},
		"refused and handed out": {func(r *record) {
			r.added("c", wire.ToStatus(task.Errorf(task.StoreUnavailable, "no")))
			r.granted("c", r.now())
		}, 1},
		"unknown and handed out": {func(r *record) {
			r.added("c", wire.ToStatus(task.Errorf(task.OutcomeUnknown, "gone")))
			r.granted("c", r.now())
		}, 0},
	} {
		r := newRecord()
		c.do(r)
		if _, wrong := r.judge(); len(wrong) != c.wrong {
			t.Errorf("%s: %d things are wrong, want %d: %q", name, len(wrong), c.wrong, wrong)
		}
	}
}
