package engine

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/taskring/taskring/matching/commit"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// table is the map of what a node has loaded, and how that comes and goes. It
// knows nothing of what a partition is, only how to load and close one:
//
//	absent ──get──> loading ──ok──> loaded ──unload──> closing ──> absent
//	                   └──failed──> absent
//
// One load runs at a time for a partition; everyone who asks meanwhile waits for
// the same one. A load belongs to the table and not to the request that began
// it, so the others do not fail when that request gives up.
type table[Q comparable] struct {
	open    func(ctx context.Context, p partition.ID) (Q, error)
	close   func(ctx context.Context, q Q, why Why) error
	timeout func() time.Duration // of a load
	limit   func() int           // partitions in the map

	ctx    context.Context //nolint:containedctx // of loads; ended by stop
	cancel context.CancelFunc
	busy   sync.WaitGroup // loads, and closings that nobody waits for

	mu struct {
		sync.Mutex
		slots    map[partition.ID]*slot[Q]
		loaded   int
		open     bool // loads are taken
		stopping bool
	}
}

// slot is one partition of the table. q and err are written before ready is
// closed and then only read.
type slot[Q comparable] struct {
	q       Q
	err     error         // why the load failed
	ready   chan struct{} // closed when the load ended
	closing bool          // guarded by table.mu
	gone    chan struct{} // closed when a closing slot has left the map
}

func newTable[Q comparable](timeout func() time.Duration, limit func() int) *table[Q] {
	t := &table[Q]{timeout: timeout, limit: limit}
	t.ctx, t.cancel = context.WithCancel(context.Background()) //nolint:gosec // stop calls it
	t.mu.slots = map[partition.ID]*slot[Q]{}
	return t
}

// start takes loads from now on.
func (t *table[Q]) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.open = true
}

// get returns the loaded partition, loading it when it is not. Without wait it
// answers NotReady or PartitionClosing rather than wait for the one or the
// other; the load goes on all the same. So it does when the wait has taken
// longer than a load may, by a tenth so that the load's own error comes first: a
// store that hangs must not hold its callers for as long as they have patience.
func (t *table[Q]) get(ctx context.Context, p partition.ID, wait bool) (Q, error) {
	var none Q
	if q, ok := t.loaded(p); ok { // nearly always: no timer for nothing
		return q, nil
	}
	if wait {
		var cancel context.CancelFunc
		patience := t.timeout() * 11 / 10
		ctx, cancel = context.WithTimeoutCause(ctx, patience,
			fmt.Errorf("the store has not answered for %v: %w", patience, context.DeadlineExceeded))
		defer cancel()
	}
	for {
		s, closing, err := t.slot(p)
		if err != nil {
			return none, err
		}
		if closing {
			if !wait {
				return none, task.Errorf(task.PartitionClosing, "partition %v is being unloaded", p)
			}
			select {
			case <-s.gone:
				continue
			case <-ctx.Done():
				return none, task.Errorf(task.PartitionClosing, "partition %v is being unloaded: %w", p, context.Cause(ctx))
			}
		}
		select {
		case <-s.ready:
			return s.q, s.err
		default:
		}
		if !wait {
			return none, task.Errorf(task.NotReady, "partition %v is loading", p)
		}
		select {
		case <-s.ready:
			return s.q, s.err
		case <-ctx.Done():
			return none, task.Errorf(task.NotReady, "partition %v is still loading: %w", p, context.Cause(ctx))
		}
	}
}

// slot returns the partition's slot, or a new one whose load it has begun.
func (t *table[Q]) slot(p partition.ID) (s *slot[Q], closing bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s = t.mu.slots[p]; s != nil {
		return s, s.closing, nil
	}
	if t.mu.stopping {
		return nil, false, task.Errorf(task.PartitionClosing, "the node is stopping and loads no partition any more")
	}
	if !t.mu.open {
		return nil, false, task.Errorf(task.NotReady, "the node has not started yet")
	}
	if len(t.mu.slots) >= t.limit() {
		full := task.Errorf(task.Quota, "the node holds %d partitions, which is the limit (%s)", len(t.mu.slots), settingMaxPartitions)
		full.Limit = &task.Limit{Name: settingMaxPartitions, RetryAfter: time.Second}
		return nil, false, full
	}
	s = &slot[Q]{ready: make(chan struct{}), gone: make(chan struct{})}
	t.mu.slots[p] = s
	t.busy.Go(func() { t.load(p, s) })
	return s, false, nil
}

// load opens the partition of a new slot. A failed load leaves nothing behind.
func (t *table[Q]) load(p partition.ID, s *slot[Q]) {
	ctx, cancel := context.WithTimeout(t.ctx, t.timeout())
	defer cancel()
	s.q, s.err = t.open(ctx, p)
	t.mu.Lock()
	if s.err != nil {
		delete(t.mu.slots, p)
	} else {
		t.mu.loaded++
	}
	t.mu.Unlock()
	close(s.ready)
}

// loaded returns the partition if it is loaded and not closing.
func (t *table[Q]) loaded(p partition.ID) (Q, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var none Q
	if s := t.mu.slots[p]; s != nil && !s.closing && s.isReady() {
		return s.q, true
	}
	return none, false
}

func (s *slot[Q]) isReady() bool {
	select {
	case <-s.ready:
		return s.err == nil
	default:
		return false
	}
}

// all returns every loaded partition that is not closing.
func (t *table[Q]) all() []Q {
	t.mu.Lock()
	defer t.mu.Unlock()
	qs := make([]Q, 0, t.mu.loaded)
	for _, s := range t.mu.slots {
		if !s.closing && s.isReady() {
			qs = append(qs, s.q)
		}
	}
	return qs
}

// count returns how many partitions are loaded.
func (t *table[Q]) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.loaded
}

// unload closes the partition and waits until it has left the map; it reports
// whether there was one. When several unload at once one of them closes it, and
// the others wait for that. A load that runs is waited for first.
func (t *table[Q]) unload(ctx context.Context, p partition.ID, why Why) (was bool, err error) {
	t.mu.Lock()
	s := t.mu.slots[p]
	t.mu.Unlock()
	if s == nil {
		return false, nil
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	if s.err != nil {
		return false, nil //nolint:nilerr // what failed to load was not loaded
	}
	closed, err := t.evict(ctx, p, s.q, why)
	if closed {
		return true, err
	}
	select {
	case <-s.gone:
		return true, nil
	case <-ctx.Done():
		return true, context.Cause(ctx)
	}
}

// evict closes q if it is what the table has of p, and reports whether it did.
// The slot leaves the map whatever close returns: a broken partition that stays
// would answer "closing" for ever.
func (t *table[Q]) evict(ctx context.Context, p partition.ID, q Q, why Why) (bool, error) {
	t.mu.Lock()
	s := t.mu.slots[p]
	if s == nil || s.closing || !s.isReady() || s.q != q {
		t.mu.Unlock()
		return false, nil
	}
	s.closing = true
	t.mu.Unlock()

	err := t.close(ctx, q, why)

	t.mu.Lock()
	delete(t.mu.slots, p)
	t.mu.loaded--
	t.mu.Unlock()
	close(s.gone)
	return true, err
}

// drop evicts q in the background. It never blocks, so that q itself may ask for
// it under its own lock.
func (t *table[Q]) drop(p partition.ID, q Q, why Why) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.mu.slots[p]
	if s == nil || t.mu.stopping { // stop closes it
		return
	}
	t.busy.Go(func() {
		<-s.ready // q may be lost before its load has ended
		// An error here is of a partition that is lost already.
		_, _ = t.evict(t.ctx, p, q, why)
	})
}

// errLoading is what stop says of a load that went on although it was told to
// end, as in a store that hangs.
var errLoading = fmt.Errorf("a partition is still being loaded: %w", commit.ErrAbandoned)

// stop refuses new loads, ends those that run and closes everything, all
// partitions at once. It returns how many did not close in good order, and what
// one of them said: errLoading when a load did not end before ctx did.
func (t *table[Q]) stop(ctx context.Context, why Why) (failed int, example error) {
	t.mu.Lock()
	t.mu.stopping = true
	t.mu.Unlock()
	t.cancel()
	quiet := make(chan struct{})
	go func() {
		defer close(quiet)
		t.busy.Wait()
	}()
	select {
	case <-quiet:
	case <-ctx.Done():
		example = errLoading
	}

	t.mu.Lock()
	ps := make([]partition.ID, 0, len(t.mu.slots))
	for p := range t.mu.slots {
		ps = append(ps, p)
	}
	t.mu.Unlock()

	results := make(chan error)
	for _, p := range ps {
		go func() {
			_, err := t.unload(ctx, p, why)
			results <- err
		}()
	}
	for range ps {
		if err := <-results; err != nil {
			failed, example = failed+1, cmp.Or(example, err)
		}
	}
	return failed, example
}
