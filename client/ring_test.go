package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
	"github.com/taskring/taskring/ring/route"
)

// fixedRing has one node, which a test may change; none: the view is not complete.
type fixedRing struct {
	view     atomic.Pointer[ring.Ring]
	complete chan struct{}
}

func newFixedRing(at ...string) *fixedRing {
	r := &fixedRing{complete: make(chan struct{})}
	if len(at) > 0 {
		r.set(at...)
	}
	return r
}

func (r *fixedRing) View() *ring.Ring { return r.view.Load() }

func (r *fixedRing) Complete() <-chan struct{} { return r.complete }

// set puts a view in force; the first one completes the ring.
func (r *fixedRing) set(at ...string) {
	view, err := ring.New(ring.Format{Slots: 7, Replication: 3, Load: 2, MaxPoints: 10}, ring.Named(at...))
	if err != nil {
		panic(err)
	}
	if r.view.Swap(view) == nil {
		close(r.complete)
	}
}

func mustStatic(tb testing.TB, addresses ...string) Ring {
	tb.Helper()
	r, err := StaticRing(ring.Named(addresses...)...)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// routes returns where a client of a ring sends the partitions of the test's queue.
func routes(t *testing.T, o Options, n int32) []string {
	t.Helper()
	c, err := NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	out := make([]string, n)
	for i := range out {
		if out[i], err = c.Route(testQueue.Partition(int32(i))); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestRoute: a client places partitions as everybody who has the same ring and
// batch size, whatever the order of the addresses.
func TestRoute(t *testing.T) {
	addresses := []string{"a:1", "b:1", "c:1", "d:1", "e:1"}
	view, err := ring.New(ring.DefaultFormat(), ring.Named(addresses...))
	if err != nil {
		t.Fatal(err)
	}
	for _, batch := range []int{0, 2, 8} {
		spread := func(partition.Queue) *QueueSettings { return &QueueSettings{Spread: route.SpreadBy(batch)} }
		got := routes(t, Options{Addresses: []string{"c:1", "a:1", "e:1", "b:1", "d:1", "a:1"}, Queues: spread}, 100)
		for n, at := range got {
			if want, _ := route.Owner(view, testQueue.Partition(int32(n)), int32(batch)); at != want.Address {
				t.Fatalf("batch size %d: partition %d is sent to %s, its owner is %s", batch, n, at, want.Address)
			}
		}
	}
}

// TestGradualSpread: during a change of the batch size each partition moves once,
// at its own instant.
func TestGradualSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now().Add(time.Minute)
		change, err := dynamicconfig.ChangeBetween(0, 4, start, start.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		addresses := []string{"a:1", "b:1", "c:1", "d:1", "e:1"}
		gradual := Options{Addresses: addresses, Queues: func(partition.Queue) *QueueSettings {
			return &QueueSettings{Spread: route.SpreadGradually(change)}
		}}
		fixed := func(batch int) []string {
			return routes(t, Options{Addresses: addresses, Queues: func(partition.Queue) *QueueSettings {
				return &QueueSettings{Spread: route.SpreadBy(batch)}
			}}, 60)
		}
		before, after := fixed(0), fixed(4)
		if got := routes(t, gradual, 60); !slices.Equal(got, before) {
			t.Error("partitions moved before the start")
		}
		time.Sleep(31 * time.Minute)
		moved, differ := 0, 0
		for n, at := range routes(t, gradual, 60) {
			flip, _ := change.When(testQueue.Partition(int32(n)).GradualKey())
			want := before[n]
			if !time.Now().Before(flip) {
				want = after[n]
			}
			if at != want {
				t.Errorf("partition %d is at %s, want %s", n, at, want)
			}
			if before[n] != after[n] {
				differ++
				if at == after[n] {
					moved++
				}
			}
		}
		if moved < differ/5 || moved > differ*4/5 {
			t.Errorf("half-way %d of %d partitions have moved", moved, differ)
		}
		time.Sleep(31 * time.Minute)
		if got := routes(t, gradual, 60); !slices.Equal(got, after) {
			t.Error("partitions stayed after the end")
		}
	})
}

// TestCallsWaitForTheFirstView: they neither fail nor go to the first node heard of.
func TestCallsWaitForTheFirstView(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixedRing()
		w := newWorld(t, 1, Options{Ring: r})
		if _, err := w.client.Route(testQueue.Partition(0)); !errors.Is(err, ErrNoView) {
			t.Errorf("Route without a view: %v, want ErrNoView", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := w.client.AddTask(ctx, addRequest("early")); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), ErrNoView.Error()) {
			t.Errorf("an add before the first view: %v, want Unavailable that says so", err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("gave up after %v, want its 3 s", took)
		}
		go func() {
			time.Sleep(5 * time.Second)
			r.set("n0")
		}()
		began = time.Now()
		mustAdd(t, w.client, "x")
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("the add took %v, want the 5 s until the view came", took)
		}
		r.set()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.client.AddTask(ctx, addRequest("y")); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "no node is known") {
			t.Errorf("an add on an empty ring: %v, want Unavailable that says so", err)
		}
	})
}
