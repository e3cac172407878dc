package partition

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestAllBacklogCodes walks all 256 codes: each stands for more than the one
// before, by at most 1/12; its figure has that code, and so has every figure up to
// the next one.
func TestAllBacklogCodes(t *testing.T) {
	for i := range 256 {
		c := BacklogCode(i)
		tasks := c.Tasks()
		if got := EncodeBacklog(tasks); got != c {
			t.Errorf("code %d stands for %d tasks, which have code %d", c, tasks, got)
		}
		if i == 0 {
			continue
		}
		before := (c - 1).Tasks()
		if tasks <= before {
			t.Errorf("code %d stands for %d tasks, the one before for %d", c, tasks, before)
		}
		if step := tasks - before; step > backlogUnit && step*backlogSteps > before {
			t.Errorf("from %d to %d tasks is more than 1/12", before, tasks)
		}
		if got := EncodeBacklog(tasks - 1); got != c-1 {
			t.Errorf("%d tasks have code %d, want %d", tasks-1, got, c-1)
		}
	}
}

func TestBacklogCodeTable(t *testing.T) {
	for tasks, want := range map[int64]BacklogCode{
		math.MinInt64: 0, -1: 0, 0: 0, 31: 0, 32: 1, 63: 1, 64: 2, 352: 11, 383: 11, 384: 12, 416: 13,
		736: 23, 767: 23, 768: 24, 831: 24, 832: 25, 1536: 36,
		469_762_048: 254, 503_316_479: 254, 503_316_480: 255, math.MaxInt64: 255,
	} {
		if got := EncodeBacklog(tasks); got != want {
			t.Errorf("%d tasks have code %d, want %d", tasks, got, want)
		}
	}
}

// drawTasks draws numbers of all sizes, many of them near a border of two codes.
func drawTasks(t *rapid.T, label string) int64 {
	border := rapid.Map(rapid.IntRange(0, 255), func(c int) int64 { return BacklogCode(c).Tasks() })
	if rapid.Bool().Draw(t, label+" near a border") {
		return border.Draw(t, label) + rapid.Int64Range(-40, 40).Draw(t, label+" off")
	}
	return rapid.Int64Range(0, 1<<rapid.IntRange(1, 62).Draw(t, label+" size")).Draw(t, label)
}

func TestBacklogCodeLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawTasks(t, "a"), drawTasks(t, "b")
		if got := EncodeBacklog(a).Tasks(); got > max(a, 0) {
			t.Fatalf("%d tasks come back as %d, which is more", a, got)
		} else if a < BacklogCode(255).Tasks() && a-got >= max(backlogUnit, got/backlogSteps+1) {
			t.Fatalf("%d tasks come back as %d, more than a step less", a, got)
		}
		if (a < b && EncodeBacklog(a) > EncodeBacklog(b)) || (a > b && EncodeBacklog(a) < EncodeBacklog(b)) {
			t.Fatalf("%d and %d change their order", a, b)
		}
		// The same with a code before.
		c := BacklogCode(rapid.IntRange(0, 255).Draw(t, "before"))
		if got := c.Next(a).Tasks(); got > max(a, 0) {
			t.Fatalf("%d tasks after code %d come back as %d, which is more", a, c, got)
		}
		if a < b && c.Next(a) > c.Next(b) {
			t.Fatalf("%d and %d change their order after code %d", a, b, c)
		}
		if exact := EncodeBacklog(a); c.Next(a) != exact && exact != c+1 {
			t.Fatalf("%d tasks after code %d have code %d, want %d", a, c, c.Next(a), exact)
		}
	})
}

// TestHysteresis lets a figure waver around each border by less than half a step:
// the code changes once at most. A figure that really grows is followed.
func TestHysteresis(t *testing.T) {
	for i := range 255 {
		low, high := BacklogCode(i), BacklogCode(i+1)
		border, step := high.Tasks(), high.Tasks()-low.Tasks()
		c := low
		for round := range 10 {
			if c = c.Next(border + step/2 - 1); c != low {
				t.Fatalf("round %d: code %d rises half a step early", round, low)
			}
			if c = c.Next(border - 1); c != low {
				t.Fatalf("round %d: code %d does not stay", round, low)
			}
		}
		if c = c.Next(border + step/2); c != high {
			t.Errorf("code %d does not rise at half a step", low)
		}
		for range 10 {
			if c = c.Next(border); c != high {
				t.Fatalf("code %d falls although its figure is reached", high)
			}
		}
		if c = c.Next(border - 1); c != low {
			t.Errorf("code %d does not fall below its figure", high)
		}
	}
	if got := BacklogCode(255).Next(math.MaxInt64); got != 255 {
		t.Errorf("the last code goes on to %d", got)
	}
}

func TestRecodeBacklogs(t *testing.T) {
	first := RecodeBacklogs("", []int64{0, 100, 1000, 1 << 40})
	if first != string([]byte{0, 3, 27, 255}) {
		t.Fatalf("first codes %v", []byte(first))
	}
	for name, tc := range map[string]struct {
		tasks []int64
		want  []byte
	}{
		"unchanged":    {[]int64{31, 127, 1023, 1 << 41}, []byte{0, 3, 27, 255}},
		"within slack": {[]int64{47, 143, 1000, 1 << 40}, []byte{0, 3, 27, 255}},
		"grown":        {[]int64{48, 144, 1000, 1 << 40}, []byte{1, 4, 27, 255}},
		"shrunk":       {[]int64{0, 95, 10, 0}, []byte{0, 2, 0, 0}},
		"fewer":        {[]int64{0, 100}, []byte{0, 3}},
		"more":         {[]int64{0, 100, 1000, 1 << 40, 64}, []byte{0, 3, 27, 255, 2}},
		"none":         {nil, []byte{}},
	} {
		if got := RecodeBacklogs(first, tc.tasks); got != string(tc.want) {
			t.Errorf("%s: %v, want %v", name, []byte(got), tc.want)
		}
	}
	c := Counts{Read: 4, Write: 4, BacklogCodes: first}
	for number, want := range map[int32]int64{0: 0, 1: 96, 2: 960} {
		if got, known := c.Backlog(number); !known || got != want {
			t.Errorf("partition %d: %d tasks, %v", number, got, known)
		}
	}
	for _, number := range []int32{-1, 4} {
		if _, known := c.Backlog(number); known {
			t.Errorf("partition %d has a figure", number)
		}
	}
}
