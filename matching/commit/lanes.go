package commit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/cespare/xxhash/v2"
	"go.opentelemetry.io/otel/metric"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// ErrAbandoned is matched by the error of a Stop that gave up: a call may still be
// running in the store, which must not be closed then.
var ErrAbandoned = errors.New("calls to the store did not end in time")

// Source is a partition that has changes to commit. It must be comparable; a
// pointer is. All calls but Partition come from the partition's lane, one at a
// time. None may block.
type Source interface {
	// Partition names the partition; it decides the lane.
	Partition() partition.ID

	// Take decides the mutation of everything not yet committed, or nil when
	// there is nothing. The lane reads the mutation until it is answered.
	Take() *row.Mutation

	// Settle answers the mutation taken last: Stored, NotStored or LostEpoch.
	// After NotStored Take is called again without another Dirty.
	Settle(o store.Outcome)

	// Unresolved returns the ids of the mutation taken last whose rows decide
	// what became of it. It is called only after an unknown outcome.
	Unresolved() []task.ID

	// Resolve answers the mutation taken last after an unknown outcome: the new
	// epoch, and what the store has of the unresolved ids, in their order. With
	// a.Err set the partition is not held any more, and what was stored of the
	// mutation stays unknown.
	Resolve(a store.Acquired, records []row.Record)
}

// Store is the part of [store.Store] that the lanes need.
type Store interface {
	Acquire(ctx context.Context, holder task.Holder, ps []partition.ID) ([]store.Acquired, error)
	Commit(ctx context.Context, ms []*row.Mutation) []store.Outcome
	Get(ctx context.Context, p partition.ID, ids []task.ID) ([]row.Record, error)
}

// Config is what lanes are made of. Store is required; zero values of the
// others are the defaults.
type Config struct {
	Store  Store        // where to commit
	Holder task.Holder  // this run of the node, for taking partitions again
	Logger *slog.Logger // of refusals and unknown outcomes; default none
	Meter  metric.Meter // of commits; default none

	Lanes    int             // goroutines, and commits in flight; default 1
	Settings func() Settings // in force; default all defaults
}

func (c *Config) complete() error {
	if c.Store == nil {
		return errors.New("commit: Config.Store is missing")
	}
	if c.Lanes < 0 {
		return errors.New("commit: Config.Lanes is negative; 0 stands for the default")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Lanes = max(c.Lanes, 1)
	if c.Settings == nil {
		c.Settings = func() Settings { return Settings{} }
	}
	return nil
}

// Lanes are the commit lanes of a node. See the package doc.
type Lanes struct {
	lanes    []*lane
	stopping chan struct{}   // closed: commit what is dirty, then end
	ctx      context.Context //nolint:containedctx // of all calls to the store; ended by abandon
	abandon  context.CancelFunc

	mu struct {
		sync.Mutex
		started, stopped bool
	}
}

// New makes the lanes; nothing runs before Start. It returns an error for a
// Config that makes no sense.
func New(cfg Config) (*Lanes, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	metrics, err := newInstruments(cfg.Meter)
	if err != nil {
		return nil, fmt.Errorf("commit: instruments: %w", err)
	}
	ls := &Lanes{lanes: make([]*lane, cfg.Lanes), stopping: make(chan struct{})}
	ls.ctx, ls.abandon = context.WithCancel(context.Background())
	for i := range ls.lanes {
		ls.lanes[i] = newLane(&cfg, metrics)
	}
	return ls, nil
}

// Start starts one goroutine per lane. Starting twice, or after Stop, does
// nothing.
func (ls *Lanes) Start() {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	if ls.mu.started || ls.mu.stopped {
		return
	}
	ls.mu.started = true
	for _, l := range ls.lanes {
		go func() {
			defer close(l.done)
			l.run(ls.ctx, ls.stopping)
		}()
	}
}

// Stop commits what is dirty and waits for the lanes to end. When ctx ends
// first it gives up, ends the calls to the store and returns ErrAbandoned with the
// cause. Stop may be called twice and before Start.
func (ls *Lanes) Stop(ctx context.Context) error {
	ls.mu.Lock()
	if !ls.mu.stopped {
		ls.mu.stopped = true
		close(ls.stopping)
	}
	started := ls.mu.started
	ls.mu.Unlock()

	defer ls.abandon()
	for _, l := range ls.lanes {
		if !started {
			break
		}
		select {
		case <-l.done:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrAbandoned, context.Cause(ctx))
		}
	}
	return nil
}

// Dirty says that s has something to commit. It never blocks and may be called
// by anyone, also under the lock of s. Further calls before the lane takes the
// mutation change nothing.
func (ls *Lanes) Dirty(s Source) {
	if len(ls.lanes) == 1 {
		ls.lanes[0].mark(s)
		return
	}
	ls.lanes[ls.laneOf(s.Partition())].mark(s)
}

func (ls *Lanes) laneOf(p partition.ID) int {
	var buf [128]byte
	return int(xxhash.Sum64(p.AppendRoutingKey(buf[:0])) % uint64(len(ls.lanes)))
}
