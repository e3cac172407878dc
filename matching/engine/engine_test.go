package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store/memory"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

var holder = task.Holder{Node: "node-1", RunID: "run-1", Address: "node-1:7233"}

// rig is an engine over a store in memory; stopping it is the test's business.
type rig struct {
	*Engine
	t        *testing.T
	store    *memory.Store
	mu       sync.Mutex
	settings tuned
	version  int
}

// tuned are the settings of a rig; those of queues hold for every queue.
type tuned struct {
	Settings
	PerQueue
}

func counted(read, write int32) tuned {
	return tuned{PerQueue: PerQueue{Counts: partition.Counts{Read: read, Write: write}}}
}

func newRig(t *testing.T, s *memory.Store, settings tuned) *rig {
	t.Helper()
	r := &rig{t: t, store: s, settings: settings}
	var err error
	r.Engine, err = New(Config{
		Store: s, Holder: holder,
		Settings: func() Settings { return r.get().Settings },
		PerQueue: func(partition.Queue) PerQueue { return r.get().PerQueue },
		Version: func() any {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.version
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Start()
	return r
}

func (r *rig) get() tuned {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settings
}

func (r *rig) set(s tuned) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settings = s
	r.version++
}

func (r *rig) stop() {
	r.t.Helper()
	if err := r.Stop(context.Background()); err != nil {
		r.t.Errorf("Stop: %v", err)
	}
}

// add adds a task to a partition, whatever the write count.
func (r *rig) add(p partition.ID) {
	r.t.Helper()
	q, err := r.Queue(r.t.Context(), p, Settle)
	if err != nil {
		r.t.Fatal(err)
	}
	got := q.Add([]*task.Task{{Payload: []byte("x"), Priority: task.DefaultPriority, AddedAt: task.At(time.Now())}}).Wait(r.t.Context())[0]
	if got.Err != nil {
		r.t.Fatal(got.Err)
	}
}

// take polls for one task without waiting.
func (r *rig) take(p partition.ID) []queue.Granted {
	r.t.Helper()
	q, err := r.Queue(r.t.Context(), p, Settle)
	if err != nil {
		r.t.Fatal(err)
	}
	return q.Poll(r.t.Context(), queue.PollRequest{Wait: time.Second}).Grants
}

func (r *rig) listed(p partition.ID) (mayHold, released bool) {
	r.t.Helper()
	l, known, err := r.Lookup(r.t.Context(), p)
	if err != nil || !known {
		r.t.Fatalf("%v is not in the catalogue: %v", p, err)
	}
	return l.Meta.MayHold, l.Meta.Released
}

// TestLoadOnStart: after a stop in good order, a start loads exactly the
// partitions that may hold tasks, and they hand out what they held.
func TestLoadOnStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		r := newRig(t, s, tuned{})
		var full, drained []partition.ID
		for i := range 20 {
			p := partition.Queue{Namespace: "ns", Name: fmt.Sprint("q", i), Type: partition.Activity}.Partition(0)
			r.add(p)
			if i%2 == 0 {
				full = append(full, p)
				continue
			}
			drained = append(drained, p)
			q, _ := r.Loaded(p)
			granted := r.take(p)
			if len(granted) != 1 {
				t.Fatalf("%v: %d tasks, want 1", p, len(granted))
			}
			if got := q.Complete([]task.Grant{granted[0].Grant}).Wait(t.Context())[0]; got.Err != nil {
				t.Fatal(got.Err)
			}
		}
		r.stop()
		if _, err := r.Queue(t.Context(), full[0], Read); !errors.Is(err, task.PartitionClosing) {
			t.Errorf("after Stop: %v, want PartitionClosing", err)
		}

		r = newRig(t, s, tuned{})
		time.Sleep(time.Second)
		for _, p := range full {
			if _, loaded := r.Loaded(p); !loaded {
				t.Errorf("%v holds a task and was not loaded", p)
			}
			if len(r.take(p)) != 1 {
				t.Errorf("%v lost its task", p)
			}
		}
		for _, p := range drained {
			if _, loaded := r.Loaded(p); loaded {
				t.Errorf("%v is drained and was loaded", p)
			}
			if mayHold, released := r.listed(p); mayHold || !released {
				t.Errorf("%v: may hold tasks: %v, released: %v; it was drained and unloaded", p, mayHold, released)
			}
		}
		r.stop()
	})
}

// TestPreloadIsPaced: 100 partitions at 10 a second take 10 s.
func TestPreloadIsPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		r := newRig(t, s, tuned{})
		for n := range 100 {
			r.add(numbered(n))
		}
		r.stop()
		r = newRig(t, s, tuned{Settings{PreloadRate: 10, PreloadConcurrency: 1}, counted(100, 100).PerQueue})
		for seconds := range 11 {
			synctest.Wait()
			if got, most := r.table.count(), 10*seconds+1; got > most || got < most-2 {
				t.Errorf("after %d s %d partitions are loaded, want about %d", seconds, got, most)
			}
			if seconds < 9 {
				time.Sleep(time.Second)
			}
			if seconds == 9 {
				time.Sleep(time.Second)
				break
			}
		}
		r.stop()
	})
}

// TestIdleUnload: five minutes after the last use a partition is unloaded; one
// with a waiting poll, or in use, is not.
func TestIdleUnload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memory.New(memory.Options{}), counted(3, 3))
		idle, polled, used := numbered(0), numbered(1), numbered(2)
		r.add(idle)
		r.add(used)
		if len(r.take(used)) != 1 {
			t.Fatal("no task")
		}
		var poll sync.WaitGroup
		ctx, cancel := context.WithCancel(t.Context())
		q, err := r.Queue(ctx, polled, Settle)
		if err != nil {
			t.Fatal(err)
		}
		poll.Go(func() { q.Poll(ctx, queue.PollRequest{Wait: time.Hour}) })
		time.Sleep(4 * time.Minute)
		if _, loaded := r.Loaded(idle); !loaded {
			t.Error("unloaded before its time")
		}
		for range 5 {
			got, _ := r.Loaded(used)
			got.Heartbeat(nil)
			time.Sleep(time.Minute)
		}
		if _, loaded := r.Loaded(idle); loaded {
			t.Error("an idle partition was not unloaded")
		}
		if _, loaded := r.Loaded(polled); !loaded {
			t.Error("a partition with a waiting poll was unloaded")
		}
		if _, loaded := r.Loaded(used); !loaded {
			t.Error("a partition in use was unloaded")
		}
		cancel()
		poll.Wait()
		if len(r.take(idle)) != 1 {
			t.Error("the task is gone after the unload")
		}
		r.stop()
	})
}

// TestRates: what is added at a steady pace is told as that pace, and none after
// it stopped.
func TestRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memory.New(memory.Options{}), tuned{PerQueue: PerQueue{IdleTimeout: time.Hour}})
		p := numbered(0)
		rate := func() float64 {
			q, _ := r.Loaded(p)
			return r.Rates(q, q.Describe()).Adds
		}
		for range 1000 {
			r.add(p)
			time.Sleep(100 * time.Millisecond)
		}
		if got := rate(); got < 9.9 || got > 10.1 {
			t.Errorf("%v adds a second, want 10", got)
		}
		time.Sleep(2 * time.Minute)
		if got := rate(); got != 0 {
			t.Errorf("%v adds a second after two minutes without any", got)
		}
		r.stop()
	})
}

// TestTakenOver: a partition that another run takes is unloaded, its polls are
// told, and a call loads it again with a higher epoch.
func TestTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		r := newRig(t, s, tuned{})
		p := numbered(0)
		r.add(p)
		q, _ := r.Loaded(p)
		first := q.Describe().Epoch
		thief := task.Holder{Node: "node-2", RunID: "run-9", Address: "node-2:7233"}
		if _, err := s.Acquire(t.Context(), thief, []partition.ID{p}); err != nil {
			t.Fatal(err)
		}
		got := q.Add([]*task.Task{{Payload: []byte("y"), Priority: 3}}).Wait(t.Context())[0]
		if !errors.Is(got.Err, task.NotOwner) {
			t.Errorf("add on a lost partition: %v, want NotOwner", got.Err)
		}
		synctest.Wait()
		if now, loaded := r.Loaded(p); loaded && now == q {
			t.Error("the lost partition is still loaded")
		}
		again, err := r.Queue(t.Context(), p, Read)
		if err != nil || again.Describe().Epoch <= first+1 {
			t.Errorf("loaded again: %v with an epoch not above the thief's", err)
		}
		r.stop()
	})
}

func TestCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memory.New(memory.Options{}), counted(4, 2))
		for _, tc := range []struct {
			number int
			use    Use
			why    task.StaleWhy // 0: accepted
		}{
			{1, Add, 0}, {2, Add, task.DrainingPartition}, {4, Add, task.InvalidPartition},
			{3, Read, 0}, {4, Read, task.InvalidPartition}, {9, Settle, 0},
		} {
			for name, get := range map[string]func(context.Context, partition.ID, Use) (*queue.Queue, error){"Queue": r.Queue, "QueueNow": r.QueueNow} {
				_, err := get(t.Context(), numbered(tc.number), tc.use)
				var e *task.Error
				switch refused := errors.As(err, &e) && e.Reason == task.StaleCounts; {
				case tc.why == 0 && refused, tc.why != 0 && !refused:
					t.Errorf("%s(%d, use %d) = %v", name, tc.number, tc.use, err)
				case refused && (e.Stale.Why != tc.why || e.Stale.Counts.Read != 4 || e.Stale.Counts.Write != 2):
					t.Errorf("%s(%d, use %d) is stale for %+v", name, tc.number, tc.use, e.Stale)
				}
			}
		}
		r.stop()
	})
}

// TestLowerCountsStrandNothing: the read count that callers are told covers what
// still holds tasks, and falls when that is drained.
func TestLowerCountsStrandNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memory.New(memory.Options{})
		r := newRig(t, s, counted(4, 4))
		p := numbered(3)
		r.add(p)
		r.set(counted(1, 1))
		if _, err := r.Queue(t.Context(), p, Read); err != nil {
			t.Errorf("reading what holds a task: %v", err)
		}
		if _, err := r.Queue(t.Context(), p, Add); !errors.Is(err, task.StaleCounts) {
			t.Errorf("adding to it: %v, want StaleCounts", err)
		}
		time.Sleep(time.Minute)
		if c := r.Counts(p.Queue); c.Read != 4 || c.Write != 1 {
			t.Errorf("counts %+v, want 4 to read and 1 to write", c)
		}
		r.stop()

		r = newRig(t, s, tuned{})
		time.Sleep(time.Second)
		if c := r.Counts(p.Queue); c.Read != 4 {
			t.Errorf("after a restart %d to read, want 4", c.Read)
		}
		granted := r.take(p)
		q, _ := r.Loaded(p)
		if len(granted) != 1 || q.Complete([]task.Grant{granted[0].Grant}).Wait(t.Context())[0].Err != nil {
			t.Fatal("the task is not there")
		}
		time.Sleep(10 * time.Minute) // idle, so unloaded, so known to be drained
		if c := r.Counts(p.Queue); c.Read != 1 {
			t.Errorf("after the last task %d to read, want 1", c.Read)
		}
		r.stop()
	})
}

func TestList(t *testing.T) {
	r := newRig(t, memory.New(memory.Options{}), counted(2, 2))
	all := []partition.Queue{
		{Namespace: "a", Name: "orders", Type: partition.Workflow},
		{Namespace: "a", Name: "orders", Type: partition.Activity},
		{Namespace: "a", Name: "other", Type: partition.Activity},
		{Namespace: "b", Name: "orders", Type: partition.Activity},
	}
	for _, q := range all {
		r.add(q.Partition(0))
		r.add(q.Partition(1))
	}
	names := func(ls []Listed) string {
		var b strings.Builder
		for _, l := range ls {
			fmt.Fprintf(&b, "%v x%d; ", l.Queue, l.Partitions)
		}
		return b.String()
	}
	for name, tc := range map[string]struct {
		filter Filter
		want   []partition.Queue
	}{
		"all":       {Filter{Limit: 10}, all},
		"namespace": {Filter{Namespace: "a", Limit: 10}, all[:3]},
		"prefix":    {Filter{Prefix: "ord", Limit: 10}, []partition.Queue{all[0], all[1], all[3]}},
		"type":      {Filter{Type: partition.Workflow, Limit: 10}, all[:1]},
		"page":      {Filter{Limit: 2, After: all[0]}, all[1:3]},
		"none":      {Filter{Namespace: "c", Limit: 10}, nil},
	} {
		got, more, err := r.List(t.Context(), tc.filter)
		var want []Listed
		for _, q := range tc.want {
			want = append(want, Listed{Queue: q, Partitions: 2})
		}
		if err != nil || names(got) != names(want) || more != (name == "page") {
			t.Errorf("%s: %s more: %v, %v; want %s", name, names(got), more, err, names(want))
		}
	}
	r.stop()
}

// TestLoadedPartitionsAreCheap: many loaded partitions cost no goroutine.
func TestLoadedPartitionsAreCheap(t *testing.T) {
	const many = 1000
	r := newRig(t, memory.New(memory.Options{}), tuned{})
	r.add(numbered(0))
	before := runtime.NumGoroutine()
	for n := range many {
		r.add(numbered(n))
	}
	if more := runtime.NumGoroutine() - before; more > 10 {
		t.Errorf("%d loaded partitions run %d goroutines", many, more)
	}
	r.stop()
}

// TestStopTellsOnce: a stop that has to leave partitions behind says so in its
// error, and not in a line of the log for each of them.
func TestStopTellsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 300
		var refuse atomic.Bool
		s := memory.New(memory.Options{Commit: func(ms []*row.Mutation) []memory.CommitFault {
			if !refuse.Load() {
				return nil
			}
			return slices.Repeat([]memory.CommitFault{memory.Refuse}, len(ms))
		}})
		var log bytes.Buffer
		e, err := New(Config{Store: s, Holder: holder, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		e.Start()
		for n := range many {
			if _, err := e.Queue(t.Context(), numbered(n), Settle); err != nil {
				t.Fatal(err)
			}
		}
		refuse.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = e.Stop(ctx)
		if want := fmt.Sprintf("%d partitions were not closed in good order", many); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Stop = %v, want one that says %q", err, want)
		}
		if !errors.Is(err, task.StoreUnavailable) {
			t.Errorf("Stop = %v, want the error of one of them in it", err)
		}
		if lines := strings.Count(log.String(), "\n"); lines > many/10 {
			t.Errorf("%d lines in the log, such as %.200s", lines, log.String())
		}
	})
}

// TestStartStopStress starts, uses and stops in any order at the same time.
func TestStartStopStress(t *testing.T) {
	for range 50 {
		e, err := New(Config{Store: memory.New(memory.Options{}), Holder: holder})
		if err != nil {
			t.Fatal(err)
		}
		var actors sync.WaitGroup
		for n := range 3 {
			actors.Go(e.Start)
			actors.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if q, err := e.Queue(ctx, numbered(n), Settle); err == nil {
					q.Poll(ctx, queue.PollRequest{Wait: time.Millisecond})
				}
				_, _ = e.Unload(ctx, numbered(n))
			})
			actors.Go(func() {
				ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
				defer cancel()
				_ = e.Stop(ctx)
			})
		}
		actors.Wait()
		if err := e.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := e.table.count(); n != 0 {
			t.Fatalf("%d partitions are loaded after Stop", n)
		}
	}
}
