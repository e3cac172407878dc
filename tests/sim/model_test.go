package sim

import (
	"errors"
	"time"

	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
)

// phase is how far a task's row has come, as the lane saw it.
type phase string

const (
	unsent   phase = "before commit"
	inFlight phase = "during commit"
	stored   phase = "after commit"
)

// modelTask is what the callers know of one task.
type modelTask struct {
	id       task.ID
	priority task.Priority
	delayed  bool
	expires  task.Micros
	phase    phase

	adding    bool // the add is not answered
	accepted  bool
	refused   bool
	completed bool // Complete was answered OK
	finishing bool // Complete was sent, or the task may have died or expired
	dead      bool // Fail was answered: dead

	granted  int        // hand-overs seen
	live     task.Grant // held by a worker whose lease has not run out
	until    time.Time  // of the live lease
	duration time.Duration
	released bool // the holder gave it back or settled it
	doubtful bool // the latest grant may not be stored: it may come again
}

// leased reports whether a worker holds the task with a lease that all must respect.
func (m *modelTask) leased(now time.Time) bool {
	return m.live.ID != 0 && !m.released && now.Before(m.until)
}

// holderGone: the core is gone. After a crash a lease that was not yet stored
// is forgotten, so that the task may come again at once.
func (m *modelTask) holderGone(w *world, crash bool) {
	if m.adding {
		m.adding = false // the caller sees a broken connection
	}
	if crash {
		m.doubtful = true
	}
	m.doubtful = m.doubtful || w.core.Lost()
	if m.leased(w.now) {
		m.until = w.now.Add(m.duration) // leases run anew
	}
	if m.phase == inFlight {
		m.phase = stored
	}
}

// call is the ticket of the simulation.
type call struct {
	kind   string
	tasks  []*modelTask
	grants []task.Grant
	phases []phase
}

func (w *world) answered(a ledger.Answer) {
	c := a.Call.(*call)
	m := c.tasks[a.Index]
	w.logf("  answer %s #%d id=%d/%d err=%v finished=%v", c.kind, m.number(w), a.ID.Epoch(), a.ID.Seq(), a.Err, a.AlreadyFinished)
	switch c.kind {
	case "add":
		w.answeredAdd(m, a)
	case "complete":
		w.hitf("complete %s: %s", c.phases[a.Index], outcome(a.Err))
		if a.Err == nil {
			m.completed, m.released = true, true
		}
	case "fail":
		w.hitf("fail %s: %s", c.phases[a.Index], outcome(a.Err))
		if a.Err == nil {
			m.dead = m.dead || a.Dead
		}
	case "release":
		w.hitf("release %s: %s", c.phases[a.Index], outcome(a.Err))
	case "heartbeat":
		w.hitf("heartbeat: %s", outcome(a.Err))
		if a.Err == nil && m.live == c.grants[a.Index] {
			m.until = w.now.Add(a.Duration)
		}
	}
}

func (w *world) answeredAdd(m *modelTask, a ledger.Answer) {
	if !m.adding {
		w.failf("task %v: its add is answered twice", a.ID)
	}
	m.adding = false
	w.hitf("add: %s, matched=%v", outcome(a.Err), a.Matched)
	switch {
	case a.Err == nil:
		m.accepted = true
	case errors.Is(a.Err, task.OutcomeUnknown):
		m.finishing = true
	default:
		m.refused = true
		if m.granted > 0 {
			w.failf("task %v: refused (%v) after a worker had it", a.ID, a.Err)
		}
	}
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	return task.ReasonOf(err).String()
}

// ended looks at a poll's result: each grant must be allowed.
func (w *world) ended(p *queue.Poll) {
	for _, g := range p.Result.Grants {
		m := w.tasks[g.Grant.ID]
		if m == nil {
			w.failf("granted task %v was never added", g.Grant.ID)
			continue
		}
		w.logf("  grant #%d id=%d/%d delivery=%d attempt=%d", m.number(w), g.Grant.ID.Epoch(), g.Grant.ID.Seq(), g.Grant.Delivery, g.Attempt)
		w.checkGrant(m, g)
		m.granted++
		m.live, m.released, m.doubtful = g.Grant, false, false
		m.duration = g.Duration
		m.until = w.now.Add(g.Duration)
		w.held = append(w.held, held{grant: g.Grant, m: m})
	}
	for i, q := range w.polls {
		if q == p {
			w.polls = append(w.polls[:i], w.polls[i+1:]...)
			break
		}
	}
	w.hitf("poll ended: %v", p.Result.Empty)
}

func (w *world) checkGrant(m *modelTask, g queue.Granted) {
	switch {
	case m.completed:
		w.failf("P3: task %v was completed and is handed out again", m.id)
	case m.refused:
		w.failf("P4: task %v was refused and is handed out", m.id)
	case m.dead:
		w.failf("task %v is dead and is handed out", m.id)
	case m.leased(w.now) && !m.doubtful:
		w.failf("P2: task %v is handed out while delivery %d has its lease until %v, now %v", m.id, m.live.Delivery, m.until.Unix(), w.now.Unix())
	}
	if m.expires != 0 && m.expires <= task.At(w.now) {
		w.failf("task %v is handed out after its expiry", m.id)
	}
	if m.granted > 0 && g.Grant.Delivery == m.live.Delivery && g.Grant.Epoch == m.live.Epoch {
		w.failf("task %v: the same grant is handed out twice", m.id)
	}
	if m.granted == 0 && !m.delayed {
		w.checkOrder(m)
	}
}

// checkOrder is P5: no task of the priority with a lower id still waits for its
// first hand-over.
func (w *world) checkOrder(m *modelTask) {
	for _, o := range w.order {
		waits := o.accepted && o.granted == 0 && !o.delayed && !o.completed && !o.finishing && !o.dead
		if waits && o.priority == m.priority && o.id < m.id && (o.expires == 0 || o.expires > task.At(w.now)) {
			w.failf("P5: task %v is handed out before task %v of the same priority", m.id, o.id)
			return
		}
	}
}

func (m *modelTask) number(w *world) int {
	for i, o := range w.order {
		if o == m {
			return i
		}
	}
	return -1
}

// countLanding counts which outcome met which kind of task.
func (w *world) countLanding(c *commitInFlight) {
	for id := range c.ids {
		m := w.tasks[id]
		if m == nil || m.phase != inFlight {
			continue
		}
		state := "waiting"
		switch e := w.core.Ledger().Find(id); {
		case e == nil:
		case e.State == ledger.Leased:
			state = "held"
		case e.State == ledger.Finished:
			state = "completed"
		case m.granted > 0:
			state = "given back"
		}
		w.hitf("outcome %v, task %s", c.outcome.Result, state)
		if c.outcome.Result == store.Unknown {
			w.hitf("outcome unknown")
		}
	}
}
