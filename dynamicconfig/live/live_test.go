package live_test

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/partition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	verbose = dynamicconfig.Global(dynamicconfig.Bool{Key: "test.verbose", Doc: "A switch."})
	limit   = dynamicconfig.PerQueue(dynamicconfig.Int{Key: "test.limit", Default: 1, Doc: "A number."})
	rate    = dynamicconfig.PerNamespace(dynamicconfig.Float{Key: "test.rate", Default: 1, Doc: "A rate."})
	batch   = dynamicconfig.Global(dynamicconfig.GradualOf(dynamicconfig.Int{Key: "test.batch", Doc: "A batch."}))

	orders   = partition.Queue{Namespace: "shop", Name: "orders", Type: partition.Activity}
	ofOrders = dynamicconfig.Constraints{Namespace: "shop", TaskQueueName: "orders"}
)

func snapshot(tb testing.TB, overrides ...dynamicconfig.Override) *dynamicconfig.Snapshot {
	tb.Helper()
	s, err := dynamicconfig.NewSnapshot(overrides...)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// change is what a callback was told.
type change struct{ Was, Is int }

// record gathers what callbacks are told, in order.
type record struct {
	mu   sync.Mutex
	told []change
}

func (r *record) note(was, is int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, change{was, is})
}

func (r *record) expect(t *testing.T, want ...change) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.told, want) {
		t.Errorf("told %v, want %v", r.told, want)
	}
	r.told = nil
}

func TestOnlyWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := live.New(nil)
		defer s.Close()
		var r record
		first, sub := live.Subscribe(s, limit.Reading(orders), r.note)
		if first != 1 {
			t.Errorf("begins at %d, want the default 1", first)
		}
		s.Publish(snapshot(t, verbose.With(true)))
		r.expect(t)
		s.Publish(snapshot(t, limit.With(7, dynamicconfig.Constraints{Namespace: "bank"})))
		r.expect(t)
		s.Publish(snapshot(t, limit.With(7, ofOrders)))
		r.expect(t, change{1, 7})
		s.Publish(snapshot(t, limit.With(7, dynamicconfig.Constraints{}))) // by another entry
		r.expect(t)
		s.Publish(nil)
		r.expect(t, change{7, 1})
		sub.Stop()
		sub.Stop()
		s.Publish(snapshot(t, limit.With(9, ofOrders)))
		r.expect(t)
	})
}

func TestFiresAtTheFlip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := live.New(nil)
		defer s.Close()
		const key = "shop:orders:2"
		var r record
		_, sub := live.Subscribe(s, dynamicconfig.ForKey(batch.Reading(), key), r.note)
		defer sub.Stop()
		start := time.Now().Add(time.Hour)
		slow, err := dynamicconfig.ChangeBetween(0, 8, start, start.Add(24*time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		s.Publish(snapshot(t, batch.With(slow)))
		flip, _ := slow.When(key)
		time.Sleep(time.Until(flip) - 1)
		r.expect(t)
		time.Sleep(time.Nanosecond)
		r.expect(t, change{0, 8})
		time.Sleep(48 * time.Hour)
		r.expect(t)
	})
}

// TestFlipIsMoved: a change that is taken back or replaced leaves no timer that
// fires.
func TestFlipIsMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := live.New(nil)
		defer s.Close()
		var r record
		_, sub := live.Subscribe(s, dynamicconfig.ForKey(batch.Reading(), "k"), r.note)
		defer sub.Stop()
		in := func(d time.Duration) dynamicconfig.Override {
			g, err := dynamicconfig.ChangeBetween(0, 8, time.Now().Add(d), time.Now().Add(d+1))
			if err != nil {
				t.Fatal(err)
			}
			return batch.With(g)
		}
		s.Publish(snapshot(t, in(10*time.Second)))
		synctest.Wait()
		s.Publish(nil)
		time.Sleep(time.Minute)
		r.expect(t)
		s.Publish(snapshot(t, in(10*time.Second)))
		synctest.Wait()
		s.Publish(snapshot(t, in(20*time.Second)))
		time.Sleep(20*time.Second - 1)
		r.expect(t)
		time.Sleep(time.Nanosecond)
		r.expect(t, change{0, 8})
	})
}

// TestFlipDuringCallback: a callback that is still at work when the key flips
// hears of the flip when it is done.
func TestFlipDuringCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := live.New(nil)
		defer s.Close()
		var r record
		live.Subscribe(s, dynamicconfig.ForKey(batch.Reading(), "k"), func(was, is int) {
			time.Sleep(time.Hour)
			r.note(was, is)
		})
		g, err := dynamicconfig.ChangeBetween(5, 8, time.Now().Add(time.Minute), time.Now().Add(2*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		s.Publish(snapshot(t, batch.With(g)))
		time.Sleep(3 * time.Hour)
		r.expect(t, change{0, 5}, change{5, 8})
	})
}

// TestNeverAtTheSameTime: while a callback runs, changes wait; it then hears of
// the last one only, and other subscriptions are not held up.
func TestNeverAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := live.New(nil)
		defer s.Close()
		hold := make(chan struct{})
		var slow, other record
		var running atomic.Int32
		_, slowSub := live.Subscribe(s, limit.Reading(orders), func(was, is int) {
			if running.Add(1) > 1 {
				t.Error("two callbacks of one subscription")
			}
			<-hold
			slow.note(was, is)
			running.Add(-1)
		})
		_, otherSub := live.Subscribe(s, limit.Reading(orders), other.note)
		for i := 2; i < 10; i++ {
			s.Publish(snapshot(t, limit.With(i, ofOrders)))
			other.expect(t, change{i - 1, i})
		}
		slow.expect(t)
		close(hold)
		slow.expect(t, change{1, 2}, change{2, 9})
		slowSub.Stop()
		otherSub.Stop()
	})
}

func TestStopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := live.New(nil)
		defer s.Close()
		hold := make(chan struct{})
		_, sub := live.Subscribe(s, limit.Reading(orders), func(int, int) { <-hold })
		s.Publish(snapshot(t, limit.With(2, ofOrders)))
		synctest.Wait()
		var stopped atomic.Bool
		go func() {
			sub.Stop()
			stopped.Store(true)
		}()
		synctest.Wait()
		if stopped.Load() {
			t.Error("Stop returned while the callback ran")
		}
		close(hold)
		synctest.Wait()
		if !stopped.Load() {
			t.Error("Stop did not return after the callback")
		}
	})
}

// TestCallbackMayCallBack: no lock is held, so a callback may use everything.
func TestCallbackMayCallBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := live.New(nil)
		defer s.Close()
		var inner record
		var sub *live.Subscription
		var calls atomic.Int32
		_, sub = live.Subscribe(s, limit.Reading(orders), func(int, int) {
			calls.Add(1)
			sub.Cancel()
			live.Subscribe(s, rate.Reading("shop"), func(_, is float64) { inner.note(0, int(is)) })
			s.Publish(snapshot(t, limit.With(3, ofOrders), rate.With(5, "shop")))
		})
		s.Publish(snapshot(t, limit.With(2, ofOrders)))
		inner.expect(t, change{0, 5})
		if calls.Load() != 1 {
			t.Errorf("%d calls after Cancel, want 1", calls.Load())
		}
		sub.Stop()
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := live.New(nil)
		var r record
		live.Subscribe(s, limit.Reading(orders), r.note)
		g, _ := dynamicconfig.ChangeBetween(0, 8, time.Now().Add(time.Hour), time.Now().Add(2*time.Hour))
		live.Subscribe(s, dynamicconfig.ForKey(batch.Reading(), "k"), r.note)
		s.Publish(snapshot(t, batch.With(g)))
		synctest.Wait()
		s.Close()
		s.Close()
		first, sub := live.Subscribe(s, limit.Reading(orders), r.note)
		s.Publish(snapshot(t, limit.With(2, ofOrders)))
		time.Sleep(3 * time.Hour)
		r.expect(t)
		sub.Stop()
		if first != 1 || limit.Get(s.Snapshot(), orders) != 2 {
			t.Error("closed settings cannot be read")
		}
	})
}

// TestComingAndGoing has subscribers come and go while snapshots are published;
// the race detector looks on, and each must see a chain without gaps that ends on
// the last value.
func TestComingAndGoing(t *testing.T) {
	s := live.New(nil)
	defer s.Close()
	var wg sync.WaitGroup
	const last = 300
	stay := make(chan int, 1)
	seen := 1
	_, sub := live.Subscribe(s, limit.Reading(orders), func(was, is int) {
		if was != seen || is == was {
			t.Errorf("told %d -> %d after %d", was, is, seen)
		}
		seen = is
		if is == last {
			stay <- is
		}
	})
	for range 4 {
		wg.Go(func() {
			for range 200 {
				prev := 0
				first, sub := live.Subscribe(s, limit.Reading(orders), func(was, is int) {
					if prev != 0 && was != prev {
						t.Errorf("told %d -> %d after %d", was, is, prev)
					}
					prev = is
				})
				sub.Stop()
				if prev != 0 && prev == first { // read without a lock: nobody writes it any more
					t.Error("told of what was known")
				}
			}
		})
	}
	for i := 2; i <= last; i++ {
		s.Publish(snapshot(t, limit.With(i, ofOrders)))
	}
	wg.Wait()
	if got := <-stay; got != last {
		t.Errorf("the last value told is %d", got)
	}
	sub.Stop()
}

func TestMemory(t *testing.T) {
	s := live.New(nil)
	m := live.NewMemory(s)
	steps := []struct {
		do   func() error
		want int
	}{
		{func() error { return m.Set(limit.With(2, ofOrders), verbose.With(true)) }, 2},
		{func() error { return m.Set(limit.With(3, ofOrders)) }, 3},
		{func() error { return m.Set(limit.With(4, dynamicconfig.Constraints{})) }, 3},
		{func() error { return m.Unset(limit.With(0, ofOrders)) }, 4},
	}
	for i, step := range steps {
		if err := step.do(); err != nil {
			t.Fatal(err)
		}
		if got := limit.Get(s.Snapshot(), orders); got != step.want || !verbose.Get(s.Snapshot()) {
			t.Errorf("step %d: %d, want %d", i, got, step.want)
		}
	}
	before := s.Snapshot()
	if err := m.Set(limit.With(-1, ofOrders)); err == nil || s.Snapshot() != before {
		t.Errorf("a value out of bounds: %v, published: %v", err, s.Snapshot() != before)
	}
}

// nodeSettings is a struct such as packages have.
type nodeSettings struct {
	Verbose bool
	Names   []string
}

func TestCached(t *testing.T) {
	s := live.New(nil)
	get := live.Cached(s, func(in *dynamicconfig.Snapshot) nodeSettings {
		return nodeSettings{verbose.Get(in), []string{"same"}}
	})
	first := get()
	if get() != first || first.Verbose {
		t.Error("another pointer for the same snapshot")
	}
	s.Publish(snapshot(t, limit.With(7, ofOrders)))
	if get() != first {
		t.Error("another pointer although nothing in the struct changed")
	}
	s.Publish(snapshot(t, verbose.With(true)))
	second := get()
	if second == first || !reflect.DeepEqual(*second, nodeSettings{true, []string{"same"}}) || first.Verbose {
		t.Errorf("%+v after the change, the old one %+v", *second, *first)
	}
}

func TestCachedPerQueue(t *testing.T) {
	s := live.New(nil)
	type settings struct{ Limit int }
	get := live.CachedPerQueue(s, func(in *dynamicconfig.Snapshot, q partition.Queue) settings {
		return settings{limit.Get(in, q)}
	})
	mail := partition.Queue{Namespace: "shop", Name: "mail", Type: partition.Activity}
	a, b := get(orders), get(mail)
	if get(orders) != a {
		t.Error("another pointer for the same snapshot")
	}
	s.Publish(snapshot(t, limit.With(7, ofOrders)))
	if get(mail) != b || get(orders) == a || get(orders).Limit != 7 {
		t.Errorf("orders %+v, mail %+v", *get(orders), *get(mail))
	}
}

// TestCachedNeverGoesBack has a slow caller build the value of an older snapshot
// while another asks for the newer one, which must be what the other gets.
func TestCachedNeverGoesBack(t *testing.T) {
	s := live.New(snapshot(t, limit.With(1, ofOrders)))
	building, resume, slowDone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	get := live.Cached(s, func(in *dynamicconfig.Snapshot) int {
		v := limit.Get(in, orders)
		if v == 1 {
			close(building)
			<-resume
		} else {
			<-slowDone
		}
		return v
	})
	go func() {
		defer close(slowDone)
		get()
	}()
	<-building
	s.Publish(snapshot(t, limit.With(2, ofOrders)))
	newer := make(chan int)
	go func() { newer <- *get() }()
	for range 1000 {
		runtime.Gosched() // the other gets as far as it can
	}
	close(resume)
	if got := <-newer; got != 2 {
		t.Errorf("asked after 2 was published, got %d", got)
	}
}

// TestCachedConcurrently: whoever asks while snapshots change gets a value of one
// of them, never an older one than before, and in the end that of the last.
func TestCachedConcurrently(t *testing.T) {
	s := live.New(nil)
	get := live.CachedPerQueue(s, func(in *dynamicconfig.Snapshot, q partition.Queue) int { return limit.Get(in, q) })
	global := live.Cached(s, func(in *dynamicconfig.Snapshot) int { return limit.Get(in, orders) })
	s.Publish(snapshot(t, limit.With(1, ofOrders)))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			queue, node := 1, 1
			for range 1000 {
				v, g := *get(orders), *global()
				if v < queue || v > 100 || g < node || g > 100 {
					t.Errorf("values %d and %d after %d and %d", v, g, queue, node)
				}
				queue, node = v, g
			}
		})
	}
	for i := 1; i <= 100; i++ {
		s.Publish(snapshot(t, limit.With(i, ofOrders)))
	}
	wg.Wait()
	if *get(orders) != 100 || *global() != 100 {
		t.Errorf("%d and %d in the end, want 100", *get(orders), *global())
	}
}

func BenchmarkCachedPerQueue(b *testing.B) {
	s := live.New(nil)
	get := live.CachedPerQueue(s, func(in *dynamicconfig.Snapshot, q partition.Queue) int { return limit.Get(in, q) })
	for b.Loop() {
		get(orders)
	}
}

// BenchmarkPublish tells 10,000 subscriptions of a change that concerns one.
func BenchmarkPublish(b *testing.B) {
	s := live.New(nil)
	defer s.Close()
	told := make(chan struct{}, 1)
	for i := range 10_000 {
		q := partition.Queue{Namespace: "shop", Name: fmt.Sprint("q", i), Type: partition.Activity}
		live.Subscribe(s, limit.Reading(q), func(int, int) { told <- struct{}{} })
	}
	i := 1
	for b.Loop() {
		i++
		s.Publish(snapshot(b, limit.With(i, dynamicconfig.Constraints{TaskQueueName: "q77"})))
		<-told
	}
}
