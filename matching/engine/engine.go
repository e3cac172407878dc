package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/taskring/taskring/matching/backlog"
	"github.com/taskring/taskring/matching/commit"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Engine is the loaded partitions of a node. All methods may be called
// concurrently.
type Engine struct {
	cfg     Config
	lanes   *commit.Lanes
	wheel   *Wheel
	table   *table[*queue.Queue]
	share   readAhead
	idle    idleTimes
	rates   rates
	raised  atomic.Pointer[map[partition.Queue]int32] // read counts above those of the settings
	metrics *instruments

	background sync.WaitGroup  // janitor and preload
	ctx        context.Context //nolint:containedctx // of the background; ended when Stop begins
	cancel     context.CancelFunc
	closing    context.Context //nolint:containedctx // of unloads; ended when Stop gives up
	abandon    context.CancelFunc

	mu struct {
		sync.Mutex
		started, stopped bool
	}
}

// New makes an engine; nothing runs and nothing is loaded before Start.
func New(cfg Config) (*Engine, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	lanes, err := commit.New(cfg.Commit)
	if err != nil {
		return nil, err
	}
	e := &Engine{cfg: cfg, lanes: lanes, wheel: NewWheel()}
	e.table = newTable[*queue.Queue](
		func() time.Duration { return e.settings().LoadTimeout },
		func() int { return e.settings().MaxPartitions },
	)
	e.table.open, e.table.close = e.open, e.close
	e.rates.byRef = map[*queue.Queue]*history{}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.closing, e.abandon = context.WithCancel(context.Background())
	if e.metrics, err = newInstruments(cfg.Meter, e); err != nil {
		return nil, fmt.Errorf("engine: instruments: %w", err)
	}
	return e, nil
}

// Start starts the lanes, the wheel and the loading of partitions that may hold
// tasks; it does not wait for the latter. Starting twice, or after Stop, does
// nothing.
func (e *Engine) Start() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.mu.started || e.mu.stopped {
		return
	}
	e.mu.started = true
	e.lanes.Start()
	e.wheel.Start()
	e.table.start()
	e.background.Go(e.janitor)
	e.background.Go(e.preload)
}

// Stop unloads everything: polls end with SHUTDOWN, what is not yet stored is
// committed, and each partition is marked released. It waits for all of it, at
// most until ctx ends, and returns an error when something was left; one that
// matches commit.ErrAbandoned when calls may still be running in the store, which
// must not be closed then. It may be called twice and before Start.
func (e *Engine) Stop(ctx context.Context) error {
	e.mu.Lock()
	e.mu.stopped = true
	e.mu.Unlock()
	defer e.abandon()
	giveUp := context.AfterFunc(ctx, e.abandon)
	defer giveUp()
	e.cancel()
	e.background.Wait()
	failed, example := e.table.stop(ctx, Shutdown)
	err := e.lanes.Stop(ctx)
	e.wheel.Stop()
	e.metrics.close()
	if failed > 0 {
		err = errors.Join(fmt.Errorf("engine: %d partitions were not closed in good order, one of them: %w", failed, example), err)
	}
	return err
}

// Use says what a caller wants of a partition; it decides whether the partition
// counts are checked.
type Use uint8

// The uses of a partition.
const (
	Add    Use = iota + 1 // refused at or above the write count
	Read                  // polls and looks: refused at or above the read count
	Settle                // what was handed out: never refused
)

// Queue returns the partition, loading it if need be; the load is waited for
// until ctx ends.
func (e *Engine) Queue(ctx context.Context, p partition.ID, use Use) (*queue.Queue, error) {
	return e.queue(ctx, p, use, true)
}

// QueueNow is Queue for the items of a batch, none of which waits for another's
// partition: while it loads the answer is NotReady.
func (e *Engine) QueueNow(ctx context.Context, p partition.ID, use Use) (*queue.Queue, error) {
	return e.queue(ctx, p, use, false)
}

// Loaded returns the partition if it is loaded, and never loads it.
func (e *Engine) Loaded(p partition.ID) (*queue.Queue, bool) { return e.table.loaded(p) }

// Load loads the partition for an operator and reports whether it was loaded
// before.
func (e *Engine) Load(ctx context.Context, p partition.ID) (q *queue.Queue, was bool, err error) {
	if q, was = e.table.loaded(p); was {
		return q, true, nil
	}
	q, err = e.Queue(ctx, p, Read)
	if errors.Is(err, task.StaleCounts) { // an operator named it, no client picked it
		err = e.noPartition(p)
	}
	return q, false, err
}

// Unload unloads the partition for an operator and reports whether it was
// loaded.
func (e *Engine) Unload(ctx context.Context, p partition.ID) (was bool, err error) {
	return e.table.unload(ctx, p, Forced)
}

// Holder is this run of the node.
func (e *Engine) Holder() task.Holder { return e.cfg.Holder }

// StoreID names the store, for tokens.
func (e *Engine) StoreID() task.StoreID { return e.cfg.Store.ID() }

func (e *Engine) queue(ctx context.Context, p partition.ID, use Use, wait bool) (*queue.Queue, error) {
	if err := e.admit(ctx, p, use); err != nil {
		return nil, err
	}
	return e.table.get(ctx, p, wait)
}

func (e *Engine) settings() Settings { return e.cfg.Settings().withDefaults() }

// admit refuses calls for partitions that this node should not load.
func (e *Engine) admit(ctx context.Context, p partition.ID, use Use) error {
	err := e.checkCounts(p, use)
	if err == nil || use != Read {
		return err
	}
	_, known, lookup := e.Lookup(ctx, p)
	if lookup != nil {
		return lookup
	}
	if known {
		return nil
	}
	return err
}

// open loads a partition: it takes the epoch, reads what has to be known before
// the first call, and makes the queue.
func (e *Engine) open(ctx context.Context, p partition.ID) (*queue.Queue, error) {
	began := time.Now()
	opened, err := backlog.Open(ctx, e.cfg.Store, e.cfg.Holder, p)
	e.metrics.loadEnded(ctx, time.Since(began), err)
	if err != nil {
		e.cfg.Logger.Warn("a partition cannot be loaded", "partition", p, "error", err)
		return nil, err
	}
	q := queue.New(queue.Config{
		Partition: p,
		Opened:    opened,
		Store:     e.cfg.Store,
		Logger:    e.cfg.Logger,
		Settings:  e.cfg.QueueSettings(p.Queue),
		Dirty:     func(q *queue.Queue) { e.lanes.Dirty(q) },
		Wake:      func(q *queue.Queue, at time.Time) { e.wheel.At(q, at) },
		Lost:      e.lose,
	})
	e.rates.begin(q)
	e.idle.loaded(e.perQueue(p.Queue).IdleTimeout)
	e.shareOut([]*queue.Queue{q})
	return q, nil
}

// close unloads a partition.
func (e *Engine) close(ctx context.Context, q *queue.Queue, why Why) error {
	reason := queue.Shutdown
	if why == Lost {
		reason = queue.Moved
	}
	err := q.Close(ctx, reason)
	e.wheel.Forget(q)
	e.rates.end(q)
	e.metrics.unloaded(ctx, why, q.Describe().Counts)
	// What a stop leaves behind is told in one error by Stop: a line for each of
	// 100,000 partitions would outlast the time that the stop was given.
	if err != nil && why != Lost && why != Shutdown {
		e.cfg.Logger.Warn("a partition was not closed in good order", "partition", q.Partition(), "why", why, "error", err)
	}
	return err
}

// lose is called by a partition that another run of a node has taken, or that
// has used up the ids of its epoch.
func (e *Engine) lose(q *queue.Queue) { e.table.drop(q.Partition(), q, Lost) }
