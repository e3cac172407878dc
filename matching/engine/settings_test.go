package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/store/memory"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// liveRig is an engine that goes by the text of a settings file.
type liveRig struct {
	*Engine
	t        *testing.T
	registry *dynamicconfig.Registry
	settings *live.Settings
}

func newLiveRig(t *testing.T, s *memory.Store, text string) *liveRig {
	t.Helper()
	r := &liveRig{t: t, settings: live.New(nil)}
	var err error
	if r.registry, err = dynamicconfig.NewRegistry(append(Declared(), wire.Declared()...)...); err != nil {
		t.Fatal(err)
	}
	r.publish(text)
	r.Engine, err = New(Config{
		Store: s, Holder: holder,
		Settings: func() Settings { return SettingsIn(r.settings.Snapshot()) },
		PerQueue: func(q partition.Queue) PerQueue { return PerQueueIn(r.settings.Snapshot(), q) },
		QueueSettings: func(q partition.Queue) func() *queue.Settings {
			return live.Cached(r.settings, func(in *dynamicconfig.Snapshot) queue.Settings { return queue.SettingsIn(in, q) })
		},
		Version: func() any { return r.settings.Snapshot() },
	})
	if err != nil {
		t.Fatal(err)
	}
	r.Start()
	return r
}

func (r *liveRig) publish(text string) {
	r.t.Helper()
	snapshot, err := r.registry.Parse([]byte(text))
	if err != nil {
		r.t.Fatal(err)
	}
	r.settings.Publish(snapshot)
}

func (r *liveRig) load(p partition.ID) *queue.Queue {
	r.t.Helper()
	q, err := r.Queue(r.t.Context(), p, Settle)
	if err != nil {
		r.t.Fatal(err)
	}
	return q
}

func (r *liveRig) stop() {
	r.t.Helper()
	if err := r.Stop(context.Background()); err != nil {
		r.t.Errorf("Stop: %v", err)
	}
}

// TestRaisedLimitLetsOthersGo: who waits because of a limit goes on within a
// second of its being raised, although nothing else happens to the partition.
func TestRaisedLimitLetsOthersGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLiveRig(t, memory.New(memory.Options{}), "matching.maxLeases: 1\nmatching.leaseDuration: 1h")
		q := r.load(numbered(0))
		for range 2 {
			one := &task.Task{Payload: []byte("x"), Priority: task.DefaultPriority, AddedAt: task.At(time.Now())}
			if got := q.Add([]*task.Task{one}).Wait(t.Context())[0]; got.Err != nil {
				t.Fatal(got.Err)
			}
		}
		if got := q.Poll(t.Context(), queue.PollRequest{Wait: time.Second}); len(got.Grants) != 1 {
			t.Fatalf("the first poll: %+v", got)
		}
		got := make(chan queue.PollResult)
		began := time.Now()
		go func() { got <- q.Poll(t.Context(), queue.PollRequest{Wait: time.Hour / 2}) }()
		synctest.Wait()
		time.Sleep(10 * time.Minute)
		r.publish("matching.maxLeases: 2\nmatching.leaseDuration: 1h")
		second := <-got
		if took := time.Since(began) - 10*time.Minute; len(second.Grants) != 1 || took > settingsEvery {
			t.Errorf("the second poll, %v after the limit was raised: %+v", took, second)
		}
		r.stop()
	})
}

// TestIdleTimePerQueue: each queue is unloaded after its own idle time, also one
// that was changed meanwhile.
func TestIdleTimePerQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		short := partition.Queue{Namespace: "ns", Name: "short", Type: partition.Activity}.Partition(0)
		long := partition.Queue{Namespace: "ns", Name: "long", Type: partition.Activity}.Partition(0)
		r := newLiveRig(t, memory.New(memory.Options{}), "matching.maxTaskqueueIdleTime: [{value: 10s, constraints: {taskQueueName: short}}]")
		synctest.Wait() // until the first sweep is planned, by the long time
		r.load(short)
		r.load(long)
		time.Sleep(13 * time.Second)
		if got := r.Partitions(); len(got) != 1 || got[0] != long {
			t.Errorf("loaded after 13 s: %v, want %v", got, long)
		}
		r.publish("matching.maxTaskqueueIdleTime: 5s")
		time.Sleep(2 * time.Second)
		if got := r.Partitions(); len(got) != 0 {
			t.Errorf("loaded although idle for longer than the new time: %v", got)
		}
		r.stop()
	})
}

// TestPreloadFollowsItsRate: a start that loads too slowly is sped up while it
// goes on.
func TestPreloadFollowsItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wide = "matching.numTaskqueueWritePartitions: 100\nmatching.preloadConcurrency: 1\n"
		s := memory.New(memory.Options{})
		r := newLiveRig(t, s, wide)
		for n := range 100 {
			one := &task.Task{Payload: []byte("x"), Priority: task.DefaultPriority, AddedAt: task.At(time.Now())}
			if got := r.load(numbered(n)).Add([]*task.Task{one}).Wait(t.Context())[0]; got.Err != nil {
				t.Fatal(got.Err)
			}
		}
		r.stop()

		r = newLiveRig(t, s, wide+"matching.preloadRate: 1")
		time.Sleep(10 * time.Second)
		if n := len(r.Partitions()); n < 10 || n > 12 {
			t.Errorf("%d partitions after 10 s at 1 a second", n)
		}
		r.publish(wide + "matching.preloadRate: 100")
		time.Sleep(3 * time.Second)
		if n := len(r.Partitions()); n != 100 {
			t.Errorf("%d partitions 3 s after the rate went up to 100 a second, want 100", n)
		}
		r.stop()
	})
}

// TestMaxPartitionsChangesLive: a limit that was raised is in force at once.
func TestMaxPartitionsChangesLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newLiveRig(t, memory.New(memory.Options{}), "matching.maxPartitions: 1")
		r.load(numbered(0))
		if _, err := r.Queue(t.Context(), numbered(1), Settle); task.ReasonOf(err) != task.Quota {
			t.Errorf("a second partition of one: %v", err)
		}
		r.publish("matching.maxPartitions: 2")
		r.load(numbered(1))
		r.stop()
	})
}

// TestCountsPerQueue: the counts of a queue are its own, and the read count never
// is below the write count.
func TestCountsPerQueue(t *testing.T) {
	r := newLiveRig(t, memory.New(memory.Options{}), `
matching.numTaskqueueWritePartitions: [{value: 3, constraints: {taskQueueName: wide}}]
matching.numTaskqueueReadPartitions: [{value: 2, constraints: {taskQueueName: wide}}, {value: 5, constraints: {namespace: other}}]
`)
	for q, want := range map[partition.Queue]partition.Counts{
		{Namespace: "ns", Name: "wide", Type: partition.Activity}:    {Read: 3, Write: 3},
		{Namespace: "ns", Name: "narrow", Type: partition.Activity}:  {Read: 1, Write: 1},
		{Namespace: "other", Name: "some", Type: partition.Workflow}: {Read: 5, Write: 1},
	} {
		if got := r.Counts(q); got != want {
			t.Errorf("%v has %+v, want %+v", q, got, want)
		}
	}
	r.stop()
}

// TestPollsLeaveDrainedPartitions: after the counts were lowered, a poll that
// waits at a partition which nobody adds to any more ends soon, not when its
// time is up, and the partition is no longer read from.
func TestPollsLeaveDrainedPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memory.New(memory.Options{}), counted(4, 4))
		p := numbered(3)
		r.add(p)
		granted := r.take(p)
		q, _ := r.Loaded(p)
		ended := make(chan queue.PollResult)
		go func() { ended <- q.Poll(t.Context(), queue.PollRequest{Wait: time.Hour}) }()
		synctest.Wait()
		r.set(counted(1, 1))
		time.Sleep(5 * drainEvery)
		if _, loaded := r.Loaded(p); !loaded {
			t.Fatal("the partition is unloaded while a worker has its task")
		}
		if q.Complete([]task.Grant{granted[0].Grant}).Wait(t.Context())[0].Err != nil {
			t.Fatal("not completed")
		}
		began := time.Now()
		if got := <-ended; got.Empty != queue.Shutdown || time.Since(began) > 2*drainEvery {
			t.Errorf("the poll ended after %v: %+v", time.Since(began), got)
		}
		time.Sleep(drainEvery)
		if _, loaded := r.Loaded(p); loaded || r.Counts(p.Queue).Read != 1 {
			t.Errorf("loaded %v, counts %+v", loaded, r.Counts(p.Queue))
		}
		r.stop()
	})
}

// TestDefaults: what no file changes is what zero values stand for.
func TestDefaults(t *testing.T) {
	if got, want := SettingsIn(nil), (Settings{}).withDefaults(); got != want {
		t.Errorf("all defaults are %+v, zero values %+v", got, want)
	}
	q := partition.Queue{Namespace: "ns", Name: "q", Type: partition.Activity}
	if got, want := PerQueueIn(nil, q), (PerQueue{}).withDefaults(); got != want {
		t.Errorf("all defaults of a queue are %+v, zero values %+v", got, want)
	}
}
