package queue

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/taskring/taskring/matching/backlog"
	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/match"
	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Settings tune a queue live. The zero value is the default.
type Settings struct {
	Limits    ledger.Limits
	PollOrder match.Order
}

// Config makes a queue. All functions are called without the queue's lock and
// must not block.
type Config struct {
	Partition partition.ID
	Opened    backlog.Opened
	Store     backlog.Store
	Logger    *slog.Logger

	// Settings returns the snapshot in force; nil means defaults. It may be
	// called at any time; the same pointer means that nothing changed.
	Settings func() *Settings

	Dirty func(*Queue)            // there is something to commit: tell the lane
	Wake  func(*Queue, time.Time) // call Tick at that time; later calls replace earlier ones
	Lost  func(*Queue)            // the partition was lost, or used up its ids: unload it

	// Granted, when set, observes each hand-over to a poll.
	Granted func(Granted)
}

// Queue is one loaded partition. It may be used concurrently. It implements the
// source of a commit lane.
type Queue struct {
	cfg  Config
	done chan struct{} // closed when the partition is released or lost
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup // reads

	mu struct {
		sync.Mutex
		core      *Core
		settings  *Settings
		budget    int // read-ahead bytes, 0 = what the settings say
		armed     time.Time
		active    time.Time // last use
		closing   bool
		ended     bool // done is closed
		reported  bool // Lost was called
		pollers   pollers
		exhausted bool
	}
}

// New returns a queue for a partition that was just opened.
func New(cfg Config) *Queue {
	now := time.Now()
	q := &Queue{cfg: cfg, done: make(chan struct{})}
	q.ctx, q.stop = context.WithCancel(context.Background())
	lc := ledger.Config{
		Partition: cfg.Partition, Epoch: cfg.Opened.Epoch, Meta: cfg.Opened.Meta, Leases: cfg.Opened.Leases,
		Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())),
	}
	q.mu.core = NewCore(lc, now)
	q.mu.active = now
	q.mu.pollers.init()
	q.event(func(time.Time) {}) // what was loaded may have timers and reads
	return q
}

// Partition names the partition.
func (q *Queue) Partition() partition.ID { return q.cfg.Partition }

// followUps is what is to be done after the lock was given back.
type followUps struct {
	effects Effects
	read    ledger.Read
	dirty   bool
	reads   bool
	wake    time.Time
	lost    bool
	end     bool
}

// event lets f change the core under the lock and carries out what followed.
func (q *Queue) event(f func(now time.Time)) {
	q.mu.Lock()
	now := time.Now()
	q.applySettings()
	f(now)
	todo := q.settleLocked(now)
	q.mu.Unlock()
	q.carryOut(todo)
}

// applySettings hands changed settings to the core. The caller holds mu.
func (q *Queue) applySettings() {
	if q.cfg.Settings == nil {
		return
	}
	s := q.cfg.Settings()
	if s == q.mu.settings {
		return
	}
	q.mu.settings = s
	q.applyLimitsLocked()
}

func (q *Queue) applyLimitsLocked() {
	var s Settings
	if q.mu.settings != nil {
		s = *q.mu.settings
	}
	if q.mu.budget > 0 && (s.Limits.ReadAheadBytes == 0 || s.Limits.ReadAheadBytes > q.mu.budget) {
		s.Limits.ReadAheadBytes = q.mu.budget
	}
	q.mu.core.ledger.SetLimits(s.Limits)
	q.mu.core.matcher.Order = s.PollOrder
}

// SetReadAhead bounds the bytes of ready tasks in memory: the queue's share of
// the node's budget. 0 leaves it to the settings.
func (q *Queue) SetReadAhead(bytes int) {
	q.event(func(time.Time) {
		q.mu.budget = bytes
		q.applyLimitsLocked()
	})
}

func (q *Queue) settleLocked(now time.Time) followUps {
	core := q.mu.core
	todo := followUps{effects: core.Settle(now), dirty: core.WantsTake()}
	if !q.mu.ended {
		todo.read, todo.reads = core.NextRead()
	}
	if todo.reads {
		q.wg.Add(1)
	}
	if next, ok := core.NextTick(now); ok && (q.mu.armed.IsZero() || next.Before(q.mu.armed)) {
		q.mu.armed, todo.wake = next, next
	}
	gone := core.Lost() || core.Ledger().Exhausted()
	if gone && !q.mu.reported {
		q.mu.reported, todo.lost = true, true
	}
	if (core.Lost() || core.Closed()) && !q.mu.ended {
		q.mu.ended, todo.end = true, true
	}
	return todo
}

func (q *Queue) carryOut(todo followUps) {
	for i := range todo.effects.Answers {
		a := &todo.effects.Answers[i]
		a.Call.(*Call).answer(*a) //nolint:forcetypeassert // the queue's tickets hold calls
	}
	for _, p := range todo.effects.Ended {
		close(p.done)
	}
	if todo.dirty {
		q.cfg.Dirty(q)
	}
	if todo.reads {
		go q.readAsked(todo.read)
	}
	if !todo.wake.IsZero() {
		q.cfg.Wake(q, todo.wake)
	}
	if todo.end {
		close(q.done)
	}
	if todo.lost {
		q.cfg.Lost(q)
	}
}

// readAsked carries out one read of the core.
func (q *Queue) readAsked(r ledger.Read) {
	defer q.wg.Done()
	page, records, err := backlog.Read(q.ctx, q.cfg.Store, q.cfg.Partition, r)
	if err != nil && q.ctx.Err() == nil {
		q.cfg.Logger.Warn("reading the backlog failed, it is tried again", "partition", q.cfg.Partition.String(), "error", err)
	}
	q.event(func(now time.Time) { q.mu.core.ReadDone(r, page, records, err, now) })
}

// Tick does what has become due; the timer wheel calls it.
func (q *Queue) Tick() {
	q.event(func(now time.Time) {
		q.mu.armed = time.Time{}
		q.mu.core.Tick(now)
	})
}

// Take returns the mutation to commit, or nil. Only the commit lane calls it.
func (q *Queue) Take() *row.Mutation {
	var m *row.Mutation
	q.event(func(now time.Time) { m = q.mu.core.Take(now) })
	return m
}

// Settle tells the outcome of the mutation taken last.
func (q *Queue) Settle(o store.Outcome) {
	q.event(func(now time.Time) { q.mu.core.Committed(o, now) })
}

// Unresolved returns the ids whose fate an unknown outcome left open.
func (q *Queue) Unresolved() []task.ID {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.core.Unresolved()
}

// Resolve ends an unknown outcome.
func (q *Queue) Resolve(a store.Acquired, records []row.Record) {
	q.event(func(time.Time) { q.mu.core.Resolve(a, records) })
}

// use begins an operation with n results: it marks the partition used and lets
// begin run, unless the partition is gone.
func (q *Queue) use(n int, begin func(c *Call, now time.Time) error) *Call {
	c := newCall(n)
	var refused error
	q.event(func(now time.Time) {
		q.mu.active = now
		if q.mu.ended {
			refused = task.Errorf(task.PartitionClosing, "partition %s is unloaded", q.cfg.Partition)
			return
		}
		refused = begin(c, now)
	})
	if refused != nil {
		return failedCall(n, refused)
	}
	return c
}

// Add adds tasks, which are the queue's from here on. Each result tells the id.
func (q *Queue) Add(tasks []*task.Task) *Call {
	return q.use(len(tasks), func(c *Call, now time.Time) error { return q.mu.core.Add(tasks, c, now) })
}

// Complete settles grants as done.
func (q *Queue) Complete(grants []task.Grant) *Call {
	return q.use(len(grants), func(c *Call, _ time.Time) error {
		q.mu.core.Complete(grants, c)
		return nil
	})
}

// Fail settles grants as failed, all for the same reason.
func (q *Queue) Fail(grants []task.Grant, f ledger.Failure) *Call {
	return q.use(len(grants), func(c *Call, now time.Time) error {
		q.mu.core.Fail(grants, f, c, now)
		return nil
	})
}

// Release gives grants back; no attempt is counted.
func (q *Queue) Release(grants []task.Grant) *Call {
	return q.use(len(grants), func(c *Call, now time.Time) error {
		q.mu.core.Release(grants, c, now)
		return nil
	})
}

// Heartbeat runs the leases of grants anew.
func (q *Queue) Heartbeat(grants []task.Grant) *Call {
	return q.use(len(grants), func(c *Call, now time.Time) error {
		q.mu.core.Heartbeat(grants, c, now)
		return nil
	})
}

// Close unloads the partition: polls end with the reason, adds are refused, all
// that is decided is written, and the partition is released in the store. It
// waits for that until ctx ends; then the partition is given up as it is, which
// loses nothing that was answered. Close may be called several times.
func (q *Queue) Close(ctx context.Context, reason EmptyReason) error {
	q.event(func(time.Time) {
		if !q.mu.closing {
			q.mu.closing = true
			q.mu.core.Close(PollResult{Empty: reason})
		}
	})
	var err error
	select {
	case <-q.done:
	case <-ctx.Done():
		err = task.Errorf(task.StoreUnavailable, "partition %s could not be released in the store: %w", q.cfg.Partition, context.Cause(ctx))
		q.event(func(time.Time) { q.mu.core.Lose("the node gave it up") })
	}
	q.stop()
	q.wg.Wait()
	return err
}

// Done is closed when the partition was released or lost.
func (q *Queue) Done() <-chan struct{} { return q.done }
