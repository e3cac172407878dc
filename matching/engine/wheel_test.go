package engine

import (
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// named is a Ticker that is never woken.
type named int

func (named) Tick() {}

// TestTimersAgainstModel compares the heap with a map that is searched.
func TestTimersAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ts, model := newTimers(), map[named]int64{}
		now := int64(0)
		earliest := func() int64 {
			least := int64(math.MaxInt64)
			for _, tick := range model {
				least = min(least, tick)
			}
			return least
		}
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				n, tick := named(rapid.IntRange(0, 9).Draw(t, "name")), now+rapid.Int64Range(-2, 20).Draw(t, "tick")
				before := earliest()
				if old, ok := model[n]; !ok || tick < old {
					model[n] = tick
				}
				first := ts.set(n, tick)
				if tick < before && !first || first && tick > before {
					t.Fatalf("set(%d) says earliest: %v, the earliest was %d", tick, first, before)
				}
			},
			"remove": func(t *rapid.T) {
				n := named(rapid.IntRange(0, 9).Draw(t, "name"))
				delete(model, n)
				ts.remove(n)
			},
			"due": func(t *rapid.T) {
				now += rapid.Int64Range(0, 10).Draw(t, "step")
				last := int64(math.MinInt64)
				for _, got := range ts.due(now, nil) {
					name, _ := got.(named)
					tick, ok := model[name]
					if !ok || tick > now || tick < last {
						t.Fatalf("at %d: %v due, set for %d (%v), after one of %d", now, got, tick, ok, last)
					}
					last = tick
					delete(model, name)
				}
				if least := earliest(); least <= now {
					t.Fatalf("at %d: one of %d was left", now, least)
				}
			},
			"": func(t *rapid.T) {
				next, ok := ts.next()
				if ok != (len(model) > 0) || (ok && next != earliest()) || len(ts.heap) != len(model) || len(ts.index) != len(model) {
					t.Fatalf("next = %d, %v with %d in the heap; the model has %v", next, ok, len(ts.heap), model)
				}
			},
		})
	})
}

// alarm notes when it was woken, and may set itself again.
type alarm struct {
	mu    sync.Mutex
	woken []time.Duration
	start time.Time
	then  func()
}

func (a *alarm) Tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.woken = append(a.woken, time.Since(a.start))
	if a.then != nil {
		a.then()
	}
}

func TestWheel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, start := NewWheel(), time.Now()
		w.Start()
		defer w.Stop()
		once, moved, forgotten, past := &alarm{start: start}, &alarm{start: start}, &alarm{start: start}, &alarm{start: start}
		again := &alarm{start: start}
		again.then = func() {
			if len(again.woken) < 3 {
				w.At(again, time.Now().Add(time.Hour))
			}
		}
		w.At(once, start.Add(101*time.Millisecond))
		w.At(moved, start.Add(time.Second))
		w.At(moved, start.Add(30*time.Millisecond))
		w.At(moved, start.Add(2*time.Second))
		w.At(forgotten, start.Add(time.Second))
		w.Forget(forgotten)
		w.At(past, start.Add(-time.Hour))
		w.At(again, start.Add(time.Minute))
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		for name, tc := range map[string]struct {
			alarm *alarm
			want  []time.Duration
		}{
			"late by less than a tick": {once, []time.Duration{110 * time.Millisecond}},
			"the earliest time counts": {moved, []time.Duration{30 * time.Millisecond}},
			"forgotten":                {forgotten, nil},
			"in the past":              {past, []time.Duration{0}},
			"set from its own tick":    {again, []time.Duration{time.Minute, time.Minute + time.Hour, time.Minute + 2*time.Hour}},
		} {
			if !slices.Equal(tc.alarm.woken, tc.want) {
				t.Errorf("%s: woken at %v, want %v", name, tc.alarm.woken, tc.want)
			}
		}
	})
}

func TestWheelStartStop(*testing.T) {
	for range 200 {
		w := NewWheel()
		var callers sync.WaitGroup
		for i := range 2 {
			callers.Go(w.Start)
			callers.Go(w.Stop)
			callers.Go(func() { w.At(named(i), time.Now()) })
		}
		callers.Wait()
		w.Stop()
	}
	NewWheel().Stop()
}

func BenchmarkWheelAt(b *testing.B) {
	w := NewWheel()
	for i := range 10_000 {
		w.At(named(i), w.epoch.Add(time.Duration(i)*time.Second))
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		w.At(named(i%10_000), w.epoch.Add(time.Duration(i*7919%10_000)*time.Second))
	}
}
