package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slowStore takes its time for a commit and ends each call as told.
type slowStore struct {
	takes     time.Duration
	mu        sync.Mutex
	commits   [][]partition.ID // the partitions of each Commit
	acquires  [][]partition.ID // and of each Acquire
	began     []time.Time      // when each Commit began
	inFlight  map[partition.ID]bool
	overlaps  int
	outcome   func(p partition.ID, nth int) store.Outcome // nth commit, from 0; nil: Stored
	acquire   func(p partition.ID, nth int) store.Acquired
	readFails int           // so many reads fail first
	hang      chan struct{} // set: commits wait for it, whatever their context says
}

// pass lets virtual time pass.
//
//arch:bubble the tests outside of a bubble have stores that take no time
func pass(d time.Duration) { time.Sleep(d) }

func (s *slowStore) Commit(_ context.Context, ms []*row.Mutation) []store.Outcome {
	s.mu.Lock()
	nth := len(s.commits)
	s.began = append(s.began, time.Now())
	ps := make([]partition.ID, 0, len(ms))
	for _, m := range ms {
		ps = append(ps, m.Partition)
		if s.inFlight[m.Partition] {
			s.overlaps++
		}
		if s.inFlight == nil {
			s.inFlight = map[partition.ID]bool{}
		}
		s.inFlight[m.Partition] = true
	}
	s.commits = append(s.commits, ps)
	s.mu.Unlock()
	if s.hang != nil {
		<-s.hang
	}
	pass(s.takes)

	s.mu.Lock()
	defer s.mu.Unlock()
	outcomes := make([]store.Outcome, len(ms))
	for i, p := range ps {
		delete(s.inFlight, p)
		outcomes[i] = store.Outcome{Result: store.Stored}
		if s.outcome != nil {
			outcomes[i] = s.outcome(p, nth)
		}
	}
	return outcomes
}

func (s *slowStore) Acquire(_ context.Context, _ task.Holder, ps []partition.ID) ([]store.Acquired, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	nth := len(s.acquires)
	s.acquires = append(s.acquires, slices.Clone(ps))
	got := make([]store.Acquired, len(ps))
	for i, p := range ps {
		got[i] = s.acquire(p, nth)
	}
	return got, nil
}

func (s *slowStore) Get(_ context.Context, _ partition.ID, ids []task.ID) ([]row.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readFails > 0 {
		s.readFails--
		return nil, errors.New("not now")
	}
	records := make([]row.Record, len(ids))
	for i, id := range ids {
		records[i] = row.Record{ID: id, Found: true}
	}
	return records, nil
}

// counter is a source whose changes are a number: each add makes it dirty, a
// commit carries all of them.
type counter struct {
	id    partition.ID
	lanes *Lanes

	mu       sync.Mutex
	pending  int
	flying   int
	stored   int
	taken    bool
	breaches []string // of C1 and C2
	ended    []store.Result
	resolved []store.Acquired
	records  []row.Record
}

func (c *counter) Partition() partition.ID { return c.id }

func (c *counter) Take() *row.Mutation {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.taken {
		c.breaches = append(c.breaches, "taken while an answer is due")
	}
	if c.pending == 0 {
		return nil
	}
	c.taken, c.flying, c.pending = true, c.pending, 0
	return &row.Mutation{Partition: c.id, DeleteLeases: make([]task.ID, c.flying)}
}

func (c *counter) Settle(o store.Outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered()
	c.ended = append(c.ended, o.Result)
	if o.Result == store.Stored {
		c.stored += c.flying
	}
	if o.Result == store.NotStored {
		c.pending += c.flying
	}
}

func (c *counter) Unresolved() []task.ID { return []task.ID{7, 9} }

func (c *counter) Resolve(a store.Acquired, records []row.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered()
	c.resolved = append(c.resolved, a)
	c.records = append(c.records, records...)
}

func (c *counter) answered() {
	if !c.taken {
		c.breaches = append(c.breaches, "answered without being taken")
	}
	c.taken = false
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending++
	c.lanes.Dirty(c)
}

// bench is a store, started lanes over it, and sources.
type bench struct {
	*testing.T
	store   *slowStore
	lanes   *Lanes
	sources []*counter
}

func setup(t *testing.T, sources int, cfg Config) *bench {
	t.Helper()
	b := &bench{T: t, store: &slowStore{takes: time.Millisecond, acquire: func(partition.ID, int) store.Acquired { return store.Acquired{Epoch: 2} }}}
	cfg.Store = b.store
	lanes, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.lanes = lanes
	for i := range sources {
		q := partition.Queue{Namespace: "ns", Name: fmt.Sprint("q", i), Type: partition.Activity}
		b.sources = append(b.sources, &counter{id: q.Partition(0), lanes: lanes})
	}
	lanes.Start()
	return b
}

func (b *bench) stop() {
	b.Helper()
	if err := b.lanes.Stop(context.Background()); err != nil {
		b.Errorf("Stop: %v", err)
	}
	for _, s := range b.sources {
		if len(s.breaches) > 0 || s.taken {
			b.Errorf("%v: %q, answer due: %v", s.id, s.breaches, s.taken)
		}
	}
	if b.store.overlaps > 0 {
		b.Errorf("%d commits of a partition overlapped another of the same", b.store.overlaps)
	}
}

// TestJoinsWhatAccumulates: a lone change leaves at virtual time 0; what 3
// partitions do during its commit leaves together in the next one.
func TestJoinsWhatAccumulates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, 3, Config{})
		start := time.Now()
		b.sources[0].add()
		synctest.Wait() // the first commit is in flight
		for range 50 {
			for _, s := range b.sources {
				s.add()
			}
		}
		time.Sleep(2 * time.Millisecond)
		synctest.Wait()
		b.stop()
		if len(b.store.commits) != 2 || len(b.store.commits[0]) != 1 || len(b.store.commits[1]) != 3 {
			t.Errorf("commits %v, want one of 1 partition and one of 3", b.store.commits)
		}
		if !b.store.began[0].Equal(start) || b.store.began[1].Sub(start) != time.Millisecond {
			t.Errorf("commits began at %v, want at once and when the first had ended", b.store.began)
		}
		if b.sources[0].stored != 51 || b.sources[1].stored != 50 {
			t.Errorf("stored %d and %d, want 51 and 50", b.sources[0].stored, b.sources[1].stored)
		}
	})
}

// TestManyWriters holds C1 and C2 with several lanes and concurrent changes.
func TestManyWriters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, 20, Config{Lanes: 3})
		var writers sync.WaitGroup
		for _, s := range b.sources {
			for range 3 {
				writers.Go(func() {
					for i := range 100 {
						s.add()
						if i%10 == 0 {
							time.Sleep(time.Duration(i) * 100 * time.Microsecond)
						}
					}
				})
			}
		}
		writers.Wait()
		b.stop()
		for _, s := range b.sources {
			if s.stored != 300 {
				t.Errorf("%v: %d changes stored, want 300", s.id, s.stored)
			}
		}
	})
}

func TestStopFinishesDirtyWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, 4, Config{})
		b.store.outcome = func(_ partition.ID, nth int) store.Outcome {
			if nth < 3 { // stopping does not give up on a store that refuses
				return store.Outcome{Result: store.NotStored, Err: errors.New("full")}
			}
			return store.Outcome{Result: store.Stored}
		}
		for _, s := range b.sources {
			s.add()
		}
		b.stop()
		for _, s := range b.sources {
			if s.stored != 1 {
				t.Errorf("%v: %d changes stored, want 1", s.id, s.stored)
			}
		}
	})
}

// TestBackOff: refusals are repeated after 10 ms doubling to 1 s, spread over
// the upper half of each step, and a success begins anew.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, 1, Config{})
		const refusals = 10
		b.store.outcome = func(_ partition.ID, nth int) store.Outcome {
			if nth < refusals || nth == refusals+1 {
				return store.Outcome{Result: store.NotStored, Err: errors.New("full")}
			}
			return store.Outcome{Result: store.Stored}
		}
		b.sources[0].add()
		time.Sleep(time.Minute)
		b.sources[0].add()
		time.Sleep(time.Minute)
		b.stop()
		if b.sources[0].stored != 2 || len(b.store.began) != refusals+3 {
			t.Fatalf("%d stored in %d commits, want 2 in %d", b.sources[0].stored, len(b.store.began), refusals+3)
		}
		step := 10 * time.Millisecond
		for i := range refusals {
			gap := b.store.began[i+1].Sub(b.store.began[i]) - time.Millisecond // less the commit itself
			if gap < step/2 || gap > step {
				t.Errorf("wait %d was %v, want %v to %v", i, gap, step/2, step)
			}
			step = min(2*step, time.Second)
		}
		if gap := b.store.began[refusals+2].Sub(b.store.began[refusals+1]); gap > 11*time.Millisecond {
			t.Errorf("after a success the first wait was %v, want 10 ms at most", gap)
		}
	})
}

// TestUnknown: of three partitions in a call one is stored, one unknown, one
// unknown and lost meanwhile. Only the two are acquired, in one call, repeated
// until it works.
func TestUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, 3, Config{})
		fine, unknown, lost := b.sources[0], b.sources[1], b.sources[2]
		b.store.outcome = func(p partition.ID, nth int) store.Outcome {
			if nth > 0 || p == fine.id {
				return store.Outcome{Result: store.Stored}
			}
			return store.Outcome{Result: store.Unknown, Err: errors.New("connection broke")}
		}
		b.store.acquire = func(p partition.ID, nth int) store.Acquired {
			switch {
			case nth == 0:
				return store.Acquired{Err: errors.New("still away")}
			case p == lost.id:
				return store.Acquired{Err: task.Errorf(task.NotOwner, "another run holds it")}
			default:
				return store.Acquired{Epoch: 5}
			}
		}
		b.store.readFails = 2
		for _, s := range b.sources {
			s.add()
		}
		time.Sleep(time.Second)
		unknown.add() // business as usual afterwards
		b.stop()

		if len(b.store.acquires) != 2 || len(b.store.acquires[0]) != 2 || len(b.store.acquires[1]) != 2 {
			t.Errorf("acquired %v, want the two unknown ones, twice", b.store.acquires)
		}
		if fine.stored != 1 || len(fine.resolved) != 0 {
			t.Errorf("the stored one: %d stored, resolved %v", fine.stored, fine.resolved)
		}
		if len(unknown.resolved) != 1 || unknown.resolved[0].Epoch != 5 || len(unknown.records) != 2 || unknown.stored != 1 {
			t.Errorf("the unknown one: resolved %+v with %d records, %d stored after", unknown.resolved, len(unknown.records), unknown.stored)
		}
		if len(lost.resolved) != 1 || !errors.Is(lost.resolved[0].Err, task.NotOwner) || len(lost.records) != 0 {
			t.Errorf("the lost one: resolved %+v", lost.resolved)
		}
	})
}

// TestLostEpochIsFinal: the lane does not come back to a lost partition.
func TestLostEpochIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, 1, Config{})
		b.store.outcome = func(partition.ID, int) store.Outcome { return store.Outcome{Result: store.LostEpoch} }
		b.sources[0].add()
		time.Sleep(time.Minute)
		b.stop()
		if !slices.Equal(b.sources[0].ended, []store.Result{store.LostEpoch}) {
			t.Errorf("settled with %v, want one lost epoch", b.sources[0].ended)
		}
	})
}

// TestStopIsBounded: a store that ignores its deadline does not hold Stop.
func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := setup(t, 1, Config{})
		b.store.hang = make(chan struct{})
		b.sources[0].add()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.lanes.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrAbandoned) {
			t.Errorf("Stop = %v, want ErrAbandoned and the deadline", err)
		}
		close(b.store.hang)
		if err := b.lanes.Stop(context.Background()); err != nil {
			t.Errorf("second Stop = %v", err)
		}
	})
}

func TestStartStopOrder(t *testing.T) {
	for range 100 {
		b := setup(t, 1, Config{Lanes: 2})
		b.store.takes = 0
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(b.lanes.Start)
			callers.Go(func() { _ = b.lanes.Stop(context.Background()) })
			callers.Go(b.sources[0].add)
		}
		callers.Wait()
		b.stop()
	}
	never, err := New(Config{Store: &slowStore{}})
	if err != nil {
		t.Fatal(err)
	}
	if err := never.Stop(context.Background()); err != nil {
		t.Errorf("Stop before Start = %v", err)
	}
	never.Start()
	if _, err := New(Config{}); err == nil {
		t.Error("New accepts a Config without a store")
	}
}

// instant is a store that stores in no time.
type instant struct {
	*slowStore
	outcomes []store.Outcome
}

func (s *instant) Commit(_ context.Context, ms []*row.Mutation) []store.Outcome {
	return s.outcomes[:len(ms)]
}

// BenchmarkDirty is what a change costs its partition.
func BenchmarkDirty(b *testing.B) {
	outcomes := make([]store.Outcome, 1)
	outcomes[0].Result = store.Stored
	lanes, err := New(Config{Store: &instant{outcomes: outcomes}})
	if err != nil {
		b.Fatal(err)
	}
	lanes.Start()
	s := &counter{lanes: lanes}
	b.ReportAllocs()
	for b.Loop() {
		s.add()
	}
	if err := lanes.Stop(context.Background()); err != nil {
		b.Fatal(err)
	}
	if s.stored == 0 {
		b.Fatal("nothing was stored")
	}
}
