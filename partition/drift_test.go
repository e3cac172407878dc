package partition

import (
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestCheck(t *testing.T) {
	q := Queue{"ns", "orders", Activity}
	ours := Counts{Read: 8, Write: 4}
	for _, tc := range []struct {
		name   string
		counts Counts
		id     ID
		access Access
		caller Counts
		want   Drift
	}{
		{"read the last", ours, q.Partition(7), Read, Counts{}, NoDrift},
		{"read beyond", ours, q.Partition(8), Read, Counts{}, BeyondRead},
		{"write the last", ours, q.Partition(3), Write, Counts{}, NoDrift},
		{"write to a draining one", ours, q.Partition(4), Write, Counts{}, Draining},
		{"write beyond", ours, q.Partition(8), Write, Counts{}, BeyondRead},
		{"beyond comes before too far off", ours, q.Partition(8), Read, Counts{Read: 90, Write: 90}, BeyondRead},

		{"reads compare reads", ours, q.Partition(0), Read, Counts{Read: 8, Write: 1}, NoDrift},
		{"writes compare writes", ours, q.Partition(0), Write, Counts{Read: 90, Write: 4}, NoDrift},
		{"reads too high", ours, q.Partition(0), Read, Counts{Read: 13, Write: 4}, TooFarOff},
		{"reads just not too high", ours, q.Partition(0), Read, Counts{Read: 12, Write: 4}, NoDrift},
		{"reads too low", ours, q.Partition(0), Read, Counts{Read: 5, Write: 4}, TooFarOff},
		{"reads just not too low", ours, q.Partition(0), Read, Counts{Read: 6, Write: 4}, NoDrift},
		{"one more than one", Counts{Read: 1, Write: 1}, q.Partition(0), Write, Counts{Read: 2, Write: 2}, NoDrift},
		{"two more than one", Counts{Read: 1, Write: 1}, q.Partition(0), Write, Counts{Read: 3, Write: 3}, TooFarOff},
		{"one less than two", Counts{Read: 2, Write: 2}, q.Partition(0), Write, Counts{Read: 1, Write: 1}, NoDrift},
		{"a stranger's counts", ours, q.Partition(0), Read, Counts{Read: math.MaxInt32, Write: 4}, TooFarOff},

		{"the caller does not know", ours, q.Partition(0), Read, Counts{}, NoDrift},
		{"the caller talks nonsense", ours, q.Partition(0), Read, Counts{Read: 1, Write: 90}, NoDrift},
		{"the server does not know", Counts{}, q.Partition(90), Write, Counts{Read: 4, Write: 4}, NoDrift},
		{"the server talks nonsense", Counts{Read: 1, Write: 2}, q.Partition(90), Write, Counts{}, NoDrift},
		{"sticky", ours, q.Only(Sticky), Write, Counts{Read: 90, Write: 90}, NoDrift},
		{"control", ours, q.Only(Control), Read, Counts{Read: 90, Write: 90}, NoDrift},
	} {
		if got := tc.counts.Check(tc.id, tc.access, tc.caller); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

// TestTooFarOff compares with the rule in fractions: more than 1 apart, and a ratio
// outside 2/3 to 3/2.
func TestTooFarOff(t *testing.T) {
	low, high := big.NewRat(2, 3), big.NewRat(3, 2)
	count := rapid.OneOf(rapid.Int32Range(1, 30), rapid.Int32Range(1, math.MaxInt32))
	rapid.Check(t, func(t *rapid.T) {
		a, b := count.Draw(t, "a"), count.Draw(t, "b")
		ratio := big.NewRat(int64(a), int64(b))
		apart := int64(a) - int64(b)
		want := (apart > 1 || apart < -1) && (ratio.Cmp(low) < 0 || ratio.Cmp(high) > 0)
		if tooFarOff(a, b) != want {
			t.Fatalf("tooFarOff(%d, %d) = %v", a, b, !want)
		}
	})
}

func TestDriftText(t *testing.T) {
	seen := map[string]bool{}
	for d := NoDrift; d <= TooFarOff+1; d++ {
		seen[d.String()] = true
	}
	if len(seen) != 5 || !seen["drift(4)"] {
		t.Errorf("the answers are called %v", seen)
	}
}
