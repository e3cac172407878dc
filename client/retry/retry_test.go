package retry

import (
	"testing"
	"time"

	"github.com/taskring/taskring/matching/task"
)

// middle is a source whose every number is the mean.
func middle() float64 { return 0.5 }

// TestTable has a row for each row of the table, for every kind that differs.
func TestTable(t *testing.T) {
	ms := time.Millisecond
	for _, tc := range []struct {
		name string
		kind Kind
		f    Failure
		was  Tries
		want Decision
		now  Tries
	}{
		{"INVALID", Repeatable, Failure{Reason: task.Invalid}, Tries{}, Decision{}, Tries{}},
		{"NOT_FOUND", Repeatable, Failure{Reason: task.NotFound}, Tries{}, Decision{}, Tries{}},
		{"UNIMPLEMENTED", Repeatable, Failure{Reason: task.Unimplemented}, Tries{}, Decision{}, Tries{}},
		{"INTERNAL", Repeatable, Failure{Reason: task.Internal}, Tries{}, Decision{}, Tries{}},
		{"LEASE_LOST", Repeatable, Failure{Reason: task.LeaseLost}, Tries{}, Decision{}, Tries{}},
		{"CANCELLED", Repeatable, Failure{Reason: task.Cancelled}, Tries{}, Decision{}, Tries{}},
		{"PAUSED", Add, Failure{Reason: task.Paused}, Tries{}, Decision{}, Tries{}},
		{"DRAINING", Add, Failure{Reason: task.Draining}, Tries{}, Decision{}, Tries{}},
		{"DISK_WATERMARK", Add, Failure{Reason: task.DiskWatermark}, Tries{}, Decision{}, Tries{}},

		{"NOT_OWNER, first", Once, Failure{Reason: task.NotOwner}, Tries{}, Decision{Reroute, 0}, Tries{Rerouted: 1}},
		{"NOT_OWNER, second", Once, Failure{Reason: task.NotOwner}, Tries{Rerouted: 1}, Decision{Reroute, 0}, Tries{Rerouted: 2}},
		{"NOT_OWNER, third", Once, Failure{Reason: task.NotOwner}, Tries{Rerouted: 2}, Decision{Reroute, 37500 * time.Microsecond}, Tries{Rerouted: 3}},
		{"NOT_OWNER, fourth", Once, Failure{Reason: task.NotOwner}, Tries{Rerouted: 3}, Decision{Reroute, 75 * ms}, Tries{Rerouted: 4}},
		{"NOT_OWNER, many", Once, Failure{Reason: task.NotOwner}, Tries{Rerouted: 1000}, Decision{Reroute, 1500 * ms}, Tries{Rerouted: 1001}},

		{"STALE_PARTITION_COUNTS, first", Add, Failure{Reason: task.StaleCounts}, Tries{}, Decision{Recount, 0}, Tries{Recounted: 1}},
		{"STALE_PARTITION_COUNTS, second", Add, Failure{Reason: task.StaleCounts}, Tries{Recounted: 1}, Decision{}, Tries{Recounted: 2}},

		{"PARTITION_CLOSING", Once, Failure{Reason: task.PartitionClosing}, Tries{}, Decision{Same, 60 * ms}, Tries{Waited: 1}},
		{"NOT_READY", Add, Failure{Reason: task.NotReady}, Tries{Waited: 500}, Decision{Same, 60 * ms}, Tries{Waited: 501}},

		{"STORE_UNAVAILABLE, first", Add, Failure{Reason: task.StoreUnavailable}, Tries{}, Decision{Other, 15 * ms}, Tries{Failed: 1}},
		{"STORE_UNAVAILABLE, second", Once, Failure{Reason: task.StoreUnavailable}, Tries{Failed: 1}, Decision{Other, 30 * ms}, Tries{Failed: 2}},
		{"STORE_UNAVAILABLE, last", Add, Failure{Reason: task.StoreUnavailable}, Tries{Failed: MaxFailed - 1}, Decision{Other, 750 * ms}, Tries{Failed: MaxFailed}},
		{"STORE_UNAVAILABLE, too many", Add, Failure{Reason: task.StoreUnavailable}, Tries{Failed: MaxFailed}, Decision{}, Tries{Failed: MaxFailed + 1}},

		{"OUTCOME_UNKNOWN, add", Add, Failure{Reason: task.OutcomeUnknown}, Tries{}, Decision{}, Tries{}},
		{"OUTCOME_UNKNOWN, fail", Once, Failure{Reason: task.OutcomeUnknown}, Tries{}, Decision{}, Tries{}},
		{"OUTCOME_UNKNOWN, complete", Repeatable, Failure{Reason: task.OutcomeUnknown}, Tries{}, Decision{Same, 15 * ms}, Tries{Failed: 1}},

		{"OUTCOME_UNKNOWN, poll", Poll, Failure{Reason: task.OutcomeUnknown}, Tries{}, Decision{Same, 37500 * time.Microsecond}, Tries{Failed: 1}},
		{"STORE_UNAVAILABLE, poll, last", Poll, Failure{Reason: task.StoreUnavailable}, Tries{Failed: MaxFailed - 1}, Decision{Other, 3750 * ms}, Tries{Failed: MaxFailed}},

		{"pushed back", Add, Failure{Reason: task.StoreUnavailable, RetryAfter: 10 * time.Second}, Tries{}, Decision{Other, 11 * time.Second}, Tries{Failed: 1}},
		{"pushed back by less than the back-off", Once, Failure{Reason: task.NotReady, RetryAfter: 10 * ms}, Tries{}, Decision{Same, 60 * ms}, Tries{Waited: 1}},
		{"told not to", Repeatable, Failure{Reason: task.NotReady, NoRetry: true}, Tries{}, Decision{}, Tries{}},

		{"not sent, add", Add, Failure{NotSent: true, Reason: task.OutcomeUnknown}, Tries{}, Decision{Other, 15 * ms}, Tries{Failed: 1}},
		{"not sent, too many", Once, Failure{NotSent: true}, Tries{Failed: MaxFailed}, Decision{}, Tries{Failed: MaxFailed + 1}},

		{"QUOTA, add", Add, Failure{Reason: task.Quota, RetryAfter: time.Second}, Tries{}, Decision{Other, 1100 * ms}, Tries{Failed: 1}},
		{"QUOTA, poll", Repeatable, Failure{Reason: task.Quota, RetryAfter: time.Second}, Tries{}, Decision{Same, 1100 * ms}, Tries{Failed: 1}},
		{"QUOTA, no advice", Repeatable, Failure{Reason: task.Quota}, Tries{}, Decision{Same, 15 * ms}, Tries{Failed: 1}},
		{"QUOTA, too many", Add, Failure{Reason: task.Quota, RetryAfter: time.Second}, Tries{Failed: MaxFailed}, Decision{}, Tries{Failed: MaxFailed + 1}},
	} {
		tries := tc.was
		if got := Decide(tc.kind, tc.f, &tries, middle); got != tc.want || tries != tc.now {
			t.Errorf("%s: %v after %v with %+v, want %v after %v with %+v", tc.name, got.Action, got.After, tries, tc.want.Action, tc.want.After, tc.now)
		}
	}
}

// TestEveryReasonIsDecided walks the reasons, so that one added later is looked
// at here: it stops unless it has a row.
func TestEveryReasonIsDecided(t *testing.T) {
	again := map[task.Reason]bool{
		task.NotOwner: true, task.StaleCounts: true, task.PartitionClosing: true, task.NotReady: true,
		task.StoreUnavailable: true, task.OutcomeUnknown: true, task.Quota: true,
	}
	for r := task.Internal; r <= task.DiskWatermark; r++ {
		d := Decide(Repeatable, Failure{Reason: r}, &Tries{}, middle)
		if (d.Action != Stop) != again[r] {
			t.Errorf("%v: %v", r, d.Action)
		}
	}
}

func TestWaitsStayInTheirSpans(t *testing.T) {
	for _, random := range []float64{0, 0.999999} {
		source := func() float64 { return random }
		for n := 1; n < 100; n++ {
			if d := BackOff(n, source); d < 10*time.Millisecond || d > time.Second {
				t.Errorf("back-off %d is %v", n, d)
			}
		}
		if d := Decide(Once, Failure{Reason: task.NotReady}, &Tries{}, source).After; d < 20*time.Millisecond || d > 100*time.Millisecond {
			t.Errorf("the wait for a loading partition is %v", d)
		}
		if d := Decide(Add, Failure{Reason: task.Quota, RetryAfter: time.Second}, &Tries{}, source).After; d < time.Second || d > 1200*time.Millisecond {
			t.Errorf("a second's quota is waited for %v", d)
		}
	}
	var total time.Duration
	tries := Tries{}
	for {
		d := Decide(Add, Failure{NotSent: true}, &tries, middle)
		if d.Action == Stop {
			break
		}
		total += d.After
	}
	if total < 1500*time.Millisecond || total > 4*time.Second {
		t.Errorf("an unreachable node is tried for %v", total)
	}
}

func TestActionsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for a := Stop; a <= Other; a++ {
		if name := a.String(); name == "unknown" || seen[name] {
			t.Errorf("action %d is called %q", a, name)
		} else {
			seen[name] = true
		}
	}
}
