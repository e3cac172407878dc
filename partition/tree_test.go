package partition

import (
	"testing"

	"pgregory.net/rapid"
)

// TestChildren compares with the parents, one by one.
func TestChildren(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := Queue{"ns", "q", Activity}
		degree, read := rapid.Int32Range(-1, 25).Draw(t, "degree"), rapid.Int32Range(1, 70).Draw(t, "read")
		p := rapid.Int32Range(0, read+2).Draw(t, "partition")
		first, end := q.Partition(p).Children(degree, read)
		if first > end || (first < end && end > read) {
			t.Fatalf("children of %d are [%d, %d)", p, first, end)
		}
		for c := range read {
			parent, ok := q.Partition(c).Parent(degree)
			if got := c >= first && c < end; got != (ok && parent.Number == p) {
				t.Fatalf("children of %d are [%d, %d), the parent of %d is %d", p, first, end, c, parent.Number)
			}
		}
	})
	q := Queue{"ns", "q", Activity}
	if first, end := q.Partition(1<<30).Children(1<<30, 1<<30); first != end {
		t.Errorf("a partition beyond all others has children [%d, %d)", first, end)
	}
	if first, end := q.Only(Sticky).Children(20, 4); first != end {
		t.Errorf("a sticky partition has children [%d, %d)", first, end)
	}
}
