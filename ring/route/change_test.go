package route

import (
	"testing"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/partition"
)

// TestChangeTellsWhatAtDoes holds the announced change of each partition to what
// then is in force.
func TestChangeTellsWhatAtDoes(t *testing.T) {
	start := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	timed, err := dynamicconfig.ChangeBetween(4, 8, start, start.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	part, err := dynamicconfig.ChangeFor(4, 8, 30)
	if err != nil {
		t.Fatal(err)
	}
	q := partition.Queue{Namespace: "ns", Name: "orders", Type: partition.Activity}
	byTime, byPercent, constant := SpreadGradually(timed), SpreadGradually(part), SpreadBy(8)
	included := 0
	for n := range int32(200) {
		p := q.Partition(n)
		c := byTime.Change(p)
		before, at := byTime.At(p, c.When.Add(-1)), byTime.At(p, c.When)
		if c.Before != 4 || c.After != 8 || !c.Included || before != 4 || at != 8 {
			t.Errorf("#%d: %+v, with batch size %d before and %d at that time", n, c, before, at)
		}
		c = byPercent.Change(p)
		if now := byPercent.At(p, start); !c.When.IsZero() || c.Included != (now == 8) {
			t.Errorf("#%d: %+v, with batch size %d", n, c, now)
		}
		if c.Included {
			included++
		}
		if c = constant.Change(p); c.Before != 8 || c.After != 8 || !c.When.IsZero() {
			t.Errorf("#%d: %+v for what does not change", n, c)
		}
	}
	if included < 30 || included > 90 {
		t.Errorf("%d of 200 partitions belong to 30 %%", included)
	}
}
