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
	Limits    ledger.Limits // bounds and defaults of the books; zero fields take their defaults
	PollOrder match.Order   // which waiting poll is served first, the newest by default

	PollerTTL  time.Duration // how long a worker that polled is shown
	MaxPollers int           // how many of them are remembered
}

// Config makes a queue. No function may block. Settings is called under the
// queue's lock, the others without it.
type Config struct {
	Partition partition.ID   // which one it is
	Opened    backlog.Opened // what the partition's ledger starts from
	Store     backlog.Store  // where the backlog is read
	Logger    *slog.Logger   // hears of reads that failed; needed

	// Settings returns the snapshot in force; nil means defaults. It may be
	// called at any time; the same pointer means that nothing changed.
	Settings func() *Settings

	Dirty func(*Queue) // there is something to commit: tell the lane
	Lost  func(*Queue) // the partition was lost, or used up its ids: unload it

	// Wake has Tick called at that time. Calls may overtake each other, so none
	// may put off what an earlier one asked for; a Tick too many does no harm.
	Wake func(*Queue, time.Time)
}

// Queue is one loaded partition. It may be used concurrently. It implements the
// source of a commit lane.
type Queue struct {
	cfg  Config
	done chan struct{}      // closed when the partition is released or lost
	ctx  context.Context    //nolint:containedctx // of the reads, which outlive the event that wants them
	stop context.CancelFunc // ends ctx
	wg   sync.WaitGroup     // reads

	mu struct {
		sync.Mutex
		core     *Core
		settings *Settings
		budget   int // read-ahead bytes, 0 = what the settings say
		armed    time.Time
		active   time.Time // last use
		closing  bool
		ended    bool // done is closed
		reported bool // Lost was called
		pollers  pollers
	}
}

// New returns a queue for a partition that was just opened.
func New(cfg Config) *Queue {
	now := time.Now()
	q := &Queue{cfg: cfg, done: make(chan struct{})}
	q.ctx, q.stop = context.WithCancel(context.Background())
	lc := ledger.Config{
		Partition: cfg.Partition, Epoch: cfg.Opened.Epoch, Meta: cfg.Opened.Meta, Leases: cfg.Opened.Leases, Dead: cfg.Opened.Dead,
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

// SetReadAhead bounds the bytes of ready tasks in memory: the queue's share of
// the node's budget. 0 leaves it to the settings.
func (q *Queue) SetReadAhead(bytes int) {
	q.event(func(time.Time) {
		q.mu.budget = bytes
		q.applyLimitsLocked()
	})
}

// Refresh has changed settings take effect now, rather than with the next call.
func (q *Queue) Refresh() { q.event(func(time.Time) {}) }

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

// Tick does what has become due; the timer wheel calls it.
func (q *Queue) Tick() {
	q.event(func(now time.Time) {
		q.mu.armed = time.Time{}
		if !q.mu.ended { // else the next holder sees to it
			q.mu.core.Tick(now)
		}
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
	q.event(func(time.Time) { q.mu.core.Committed(o) })
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
