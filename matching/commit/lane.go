package commit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// lane commits for the partitions that hash to it. Everything but mu belongs to
// the goroutine of run.
type lane struct {
	cfg     *Config
	metrics *instruments
	wake    chan struct{} // one slot: something is dirty
	done    chan struct{} // closed when run has ended
	backoff backoff

	mu struct {
		sync.Mutex
		dirty map[Source]struct{}
		order []Source // the keys of dirty, first come first
	}
	spare struct { // reused between rounds, swapped with mu
		dirty map[Source]struct{}
		order []Source
	}
	taken     []Source // those of the current commit, in step with mutations
	mutations []*row.Mutation
}

func newLane(cfg *Config, metrics *instruments) *lane {
	l := &lane{
		cfg: cfg, metrics: metrics, wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	l.mu.dirty = map[Source]struct{}{}
	l.spare.dirty = map[Source]struct{}{}
	return l
}

// mark puts s into the dirty set and wakes the lane.
func (l *lane) mark(s Source) {
	l.mu.Lock()
	_, marked := l.mu.dirty[s]
	if !marked {
		l.mu.dirty[s] = struct{}{}
		l.mu.order = append(l.mu.order, s)
	}
	l.mu.Unlock()
	if marked {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run commits until stopping is closed and nothing is dirty, or ctx ends.
func (l *lane) run(ctx context.Context, stopping <-chan struct{}) {
	for {
		select {
		case <-l.wake:
		case <-stopping:
			l.drain(ctx)
			return
		}
		runtime.Gosched()
		l.round(ctx, stopping)
	}
}

// drain commits what is still dirty; ctx bounds it.
func (l *lane) drain(ctx context.Context) {
	for more := true; more && ctx.Err() == nil; {
		more = l.round(ctx, nil)
	}
}

// round makes one commit of everything dirty and reports whether anything was.
func (l *lane) round(ctx context.Context, stopping <-chan struct{}) bool {
	sources := l.take()
	for _, s := range sources {
		if m := s.Take(); m != nil {
			l.taken = append(l.taken, s)
			l.mutations = append(l.mutations, m)
		}
	}
	if len(l.taken) > 0 {
		l.commit(ctx, stopping)
	}
	clear(l.taken)
	clear(l.mutations)
	clear(l.spare.order)
	l.taken, l.mutations = l.taken[:0], l.mutations[:0]
	return len(sources) > 0
}

// take empties the dirty set. The result is valid until the next take.
func (l *lane) take() []Source {
	clear(l.spare.dirty)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.dirty, l.spare.dirty = l.spare.dirty, l.mu.dirty
	l.mu.order, l.spare.order = l.spare.order[:0], l.mu.order
	return l.spare.order
}

// commit hands the mutations to the store and settles each.
func (l *lane) commit(ctx context.Context, stopping <-chan struct{}) {
	began := time.Now()
	deadline, cancel := context.WithTimeout(ctx, l.settings().Deadline)
	outcomes := l.cfg.Store.Commit(deadline, l.mutations)
	cancel()
	l.metrics.committed(ctx, time.Since(began), l.mutations, outcomes)

	var refused error
	var unknown []int
	for i, o := range outcomes {
		switch o.Result {
		case store.Unknown:
			unknown = append(unknown, i)
			refused = o.Err
			continue
		case store.NotStored:
			refused = o.Err
		case store.Stored, store.LostEpoch:
		}
		l.taken[i].Settle(o)
		if o.Result == store.NotStored {
			l.mark(l.taken[i])
		}
	}
	if len(unknown) > 0 {
		l.cfg.Logger.Warn("the outcome of a commit is unknown, taking its partitions again",
			"partitions", len(unknown), "error", refused)
		l.resolve(ctx, unknown)
		return
	}
	if refused == nil {
		l.backoff.reset()
		return
	}
	wait := l.backoff.next(l.settings())
	l.cfg.Logger.Warn("the store refused a commit, it is repeated", "after", wait, "error", refused)
	sleep(ctx, stopping, wait)
}

// resolve finds out what became of the taken mutations with the given indexes.
func (l *lane) resolve(ctx context.Context, unknown []int) {
	acquired := l.acquire(ctx, unknown)
	for k, i := range unknown {
		s, a := l.taken[i], acquired[k]
		var records []row.Record
		if a.Err == nil {
			var err error
			if records, err = l.read(ctx, s); err != nil {
				a = store.Acquired{Err: err}
			}
		}
		s.Resolve(a, records)
	}
}

// acquire takes the partitions again, repeating until each was taken or is
// surely someone else's. After ctx ended the rest come back with an error.
func (l *lane) acquire(ctx context.Context, unknown []int) []store.Acquired {
	result := make([]store.Acquired, len(unknown))
	left := make([]int, len(unknown)) // indexes into result
	for k := range left {
		left[k] = k
	}
	for {
		ps := make([]partition.ID, len(left))
		for j, k := range left {
			ps[j] = l.taken[unknown[k]].Partition()
		}
		got := l.acquireOnce(ctx, ps)
		again := left[:0]
		var cause error
		for j, k := range left {
			result[k] = got[j]
			if err := got[j].Err; err != nil && task.ReasonOf(err) != task.NotOwner {
				again, cause = append(again, k), err
			}
		}
		left = again
		if len(left) == 0 {
			l.backoff.reset()
			return result
		}
		if ctx.Err() != nil {
			return result
		}
		wait := l.backoff.next(l.settings())
		l.cfg.Logger.Warn("partitions cannot be taken again yet", "partitions", len(left), "after", wait, "error", cause)
		sleep(ctx, nil, wait)
	}
}

// acquireOnce makes one call; an error of the whole call stands in each answer.
func (l *lane) acquireOnce(ctx context.Context, ps []partition.ID) []store.Acquired {
	deadline, cancel := context.WithTimeout(ctx, l.settings().Deadline)
	defer cancel()
	got, err := l.cfg.Store.Acquire(deadline, l.cfg.Holder, ps)
	if err == nil && len(got) != len(ps) {
		err = fmt.Errorf("the store answered for %d of %d partitions", len(got), len(ps))
	}
	if err != nil {
		got = make([]store.Acquired, len(ps))
		for i := range got {
			got[i].Err = err
		}
	}
	return got
}

// read reads what the store has of the unresolved ids of s, repeating until it
// works or ctx ends.
func (l *lane) read(ctx context.Context, s Source) ([]row.Record, error) {
	ids := s.Unresolved()
	if len(ids) == 0 {
		return nil, nil
	}
	for {
		deadline, cancel := context.WithTimeout(ctx, l.settings().Deadline)
		records, err := l.cfg.Store.Get(deadline, s.Partition(), ids)
		cancel()
		if err == nil {
			l.backoff.reset()
			return records, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		wait := l.backoff.next(l.settings())
		l.cfg.Logger.Warn("unresolved tasks cannot be read yet", "partition", s.Partition(), "tasks", len(ids), "after", wait, "error", err)
		sleep(ctx, nil, wait)
	}
}

// sleep waits for d, until ctx ends or until stopping is closed.
func sleep(ctx context.Context, stopping <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-stopping:
	}
}

func (l *lane) settings() Settings { return l.cfg.Settings().WithDefaults() }

// backoff doubles between the bounds of the settings; each step is spread over
// its upper half, so that lanes that failed together do not come back together.
type backoff struct {
	current time.Duration
}

func (b *backoff) next(s Settings) time.Duration {
	b.current = min(max(2*b.current, s.RetryInitial), s.RetryMax)
	return b.current/2 + rand.N(b.current/2+1)
}

func (b *backoff) reset() { b.current = 0 }
