package dynamicconfig

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taskring/taskring/partition"
)

var (
	ten    = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	eleven = ten.Add(time.Hour)
)

func between(tb testing.TB, start, end time.Time) Gradual[int] {
	tb.Helper()
	g, err := ChangeBetween(0, 8, start, end)
	if err != nil {
		tb.Fatal(err)
	}
	return g
}

// TestFlipGolden pins the instants at which keys flip: they must be the same in
// every process of every version. The figures come from another implementation of
// the hash, in another language.
func TestFlipGolden(t *testing.T) {
	g := between(t, ten, eleven)
	for key, want := range map[string]time.Duration{
		"":                          3364829753514,
		"shop:orders:2":             1022804299418,
		"shop:/_sys/orders/1:2":     919719617534,
		"default:mail:1":            742916246795,
		"ns:a/b:c:3":                1769924302814,
		strings.Repeat("long", 100): 2721648764598,
	} {
		flip, ok := g.When(key)
		if got := flip.Sub(ten); !ok || got != want {
			t.Errorf("%.30q flips %d ns after the start, want %d", key, got, want)
		}
	}
	for key, want := range map[string]float64{"shop:orders:2": 28.41123, "default:mail:1": 20.636562, "ns:a/b:c:3": 49.164563} {
		below, _ := ChangeFor(0, 8, want)
		above, _ := ChangeFor(0, 8, want+0.000001)
		if below.Changed(key, ten) || !above.Changed(key, ten) {
			t.Errorf("%q is not new from just above %v %% on", key, want)
		}
	}
}

func TestGradualEdges(t *testing.T) {
	g := between(t, ten, eleven)
	for i := range 1000 {
		key := fmt.Sprint("queue", i)
		flip, _ := g.When(key)
		if flip.Before(ten) || !flip.Before(eleven) {
			t.Fatalf("%s flips at %v, outside of [start, end)", key, flip)
		}
		for _, tc := range []struct {
			at   time.Time
			want int
		}{{ten.Add(-1), 0}, {flip.Add(-1), 0}, {flip, 8}, {flip.Add(1), 8}, {eleven, 8}, {eleven.Add(time.Hour), 8}} {
			if got := g.Value(key, tc.at); got != tc.want {
				t.Fatalf("%s at %v: %d, want %d", key, tc.at, got, tc.want)
			}
		}
	}
}

// TestGradualProperties: G1, G2 and G4 for any times and keys, one of the
// instants asked for in another zone.
func TestGradualProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(0, rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "start"))
		length := time.Duration(rapid.Int64Range(1, math.MaxInt64/2).Draw(t, "length"))
		key := rapid.String().Draw(t, "key")
		g, err := ChangeBetween(1, 2, start, start.Add(length))
		if err != nil {
			t.Fatal(err)
		}
		if g.Value(key, start.Add(-1)) != 1 || g.Value(key, start.Add(length)) != 2 {
			t.Fatal("G2: not old before the start, or not new at the end")
		}
		a := start.Add(time.Duration(rapid.Int64Range(0, int64(length)).Draw(t, "a")))
		b := start.Add(time.Duration(rapid.Int64Range(0, int64(length)).Draw(t, "b")))
		if b.Before(a) {
			a, b = b, a
		}
		if g.Value(key, a) > g.Value(key, b) {
			t.Fatal("G1: the key went back")
		}
		again, _ := ChangeBetween(1, 2, start.In(time.FixedZone("", 3600)), start.Add(length).UTC())
		if g.Value(key, a) != again.Value(key, a.UTC()) {
			t.Fatal("G4: two processes differ")
		}
	})
}

func TestPercentProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.String().Draw(t, "key")
		low, high := rapid.Float64Range(0, 100).Draw(t, "low"), rapid.Float64Range(0, 100).Draw(t, "high")
		if high < low {
			low, high = high, low
		}
		less, _ := ChangeFor(false, true, low)
		more, _ := ChangeFor(false, true, high)
		if less.Value(key, ten) && !more.Value(key, ten) {
			t.Fatalf("G3: new at %v %% and not at %v %%", low, high)
		}
		none, _ := ChangeFor(false, true, 0)
		all, _ := ChangeFor(false, true, 100)
		if none.Value(key, ten) || !all.Value(key, ten) {
			t.Fatal("G3: 0 is not nobody, or 100 not everybody")
		}
	})
}

// TestGradualIsEven: of 100,000 keys the share that is new is within 1 % of what
// was asked for (the standard deviation is 0.16 %).
func TestGradualIsEven(t *testing.T) {
	g := between(t, ten, eleven)
	for _, share := range []float64{0.1, 0.5, 0.9} {
		p, err := ChangeFor(0, 8, share*100)
		if err != nil {
			t.Fatal(err)
		}
		at := ten.Add(time.Duration(share * float64(time.Hour)))
		timed, percent := 0, 0
		for i := range 100_000 {
			key := QueueKey(queueOf("ns", fmt.Sprint("q", i), partition.Activity))
			timed += g.Value(key, at) / 8
			percent += p.Value(key, at) / 8
		}
		for name, got := range map[string]int{"timed": timed, "percent": percent} {
			if math.Abs(float64(got)/100_000-share) > 0.01 {
				t.Errorf("%s: %d of 100,000 keys are new, want %v", name, got, share)
			}
		}
	}
}

func TestGradualRefuses(t *testing.T) {
	for _, tc := range []struct {
		start, end time.Time
		want       string
	}{
		{eleven, ten, "not before the end"},
		{ten, ten, "not before the end"},
		{time.Time{}, ten, "year"},
		{ten, ten.AddDate(300, 0, 0), "year"},
	} {
		if _, err := ChangeBetween(0, 1, tc.start, tc.end); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v to %v: %v, want %q", tc.start, tc.end, err, tc.want)
		}
	}
	for _, p := range []float64{-1, 100.1, math.NaN()} {
		if _, err := ChangeFor(0, 1, p); err == nil {
			t.Errorf("%v %% is accepted", p)
		}
	}
}

func TestReadingFollowsTheFlip(t *testing.T) {
	s := load(t, "matching.spreadRoutingBatchSize: {old: 0, new: 8, start: 2026-12-01T10:00:00Z, end: 2026-12-01T11:00:00Z}")
	const key = "shop:orders:2"
	flip, _ := spread.Get(s).When(key)
	r := ForKey(spread.Reading(), key)
	if next, ok := r.Next(s, ten); !ok || !next.Equal(flip) || r.Value(s, ten) != 0 {
		t.Errorf("before: value %d, next %v %v", r.Value(s, ten), next, ok)
	}
	if _, ok := r.Next(s, flip); ok || r.Value(s, flip) != 8 {
		t.Errorf("at the flip: value %d, and another change to come: %v", r.Value(s, flip), ok)
	}
	if _, ok := r.Next(nil, ten); ok || r.Value(nil, ten) != 0 {
		t.Error("the default changes with time")
	}
}
