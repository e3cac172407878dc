package dynamicconfig

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/taskring/taskring/partition"
)

// TestPrecedence is the table of the package's doc: each row has an entry more,
// of the next higher rank, and all hold for the queue asked for.
func TestPrecedence(t *testing.T) {
	const ns, name, typ = "shop", "orders", partition.Activity
	ascending := []Constraints{
		{},
		{TaskType: typ},
		{Namespace: ns},
		{TaskQueueName: name},
		{Namespace: ns, TaskType: typ},
		{TaskQueueName: name, TaskType: typ},
		{Namespace: ns, TaskQueueName: name},
		{Namespace: ns, TaskQueueName: name, TaskType: typ},
	}
	for top := range ascending {
		var upTo []Override
		for i, c := range ascending[:top+1] {
			upTo = append(upTo, writes.With(100+i, c))
		}
		for _, reversed := range []bool{false, true} {
			if reversed {
				slices.Reverse(upTo)
			}
			s, err := NewSnapshot(upTo...)
			if err != nil {
				t.Fatal(err)
			}
			if got := writes.Get(s, queueOf(ns, name, typ)); got != 100+top {
				t.Errorf("of %v (reversed: %v) the value %d wins, want %d", ascending[:top+1], reversed, got, 100+top)
			}
		}
	}
}

// TestPrecedenceElsewhere looks at the same entries from queues for which only
// some of them hold.
func TestPrecedenceElsewhere(t *testing.T) {
	s := load(t, `
matching.numTaskqueueWritePartitions:
  - {value: 8, constraints: {namespace: shop, taskQueueName: orders, taskType: activity}}
  - {value: 7, constraints: {namespace: shop, taskQueueName: orders}}
  - {value: 6, constraints: {taskQueueName: orders, taskType: activity}}
  - {value: 5, constraints: {namespace: shop, taskType: activity}}
  - {value: 4, constraints: {taskQueueName: orders}}
  - {value: 3, constraints: {namespace: shop}}
  - {value: 2, constraints: {taskType: activity}}
  - {value: 1}
`)
	for _, tc := range []struct {
		q    partition.Queue
		want int
	}{
		{queueOf("shop", "orders", partition.Activity), 8},
		{queueOf("shop", "orders", partition.Workflow), 7},
		{queueOf("bank", "orders", partition.Activity), 6},
		{queueOf("shop", "mail", partition.Activity), 5},
		{queueOf("bank", "orders", partition.Workflow), 4},
		{queueOf("shop", "mail", partition.Workflow), 3},
		{queueOf("bank", "mail", partition.Activity), 2},
		{queueOf("bank", "mail", partition.Workflow), 1},
		{queueOf("Shop", "Orders", partition.Dispatch), 1}, // names are case-sensitive
		{queueOf("shop", "mail", 77), 3},                   // a type of a newer version
		{partition.Queue{}, 1},
	} {
		if got := writes.Get(s, tc.q); got != tc.want {
			t.Errorf("%v: %d, want %d", tc.q, got, tc.want)
		}
	}
}

// dumbLookup is the rule of precedence as a sentence: of the entries that hold
// take those with the most constraints, then by name, then by namespace.
func dumbLookup(entries map[Constraints]int, q partition.Queue, fallback int) int {
	var holding []Constraints
	for c := range entries {
		if c.Hold(q) {
			holding = append(holding, c)
		}
	}
	if len(holding) == 0 {
		return fallback
	}
	return entries[slices.MaxFunc(holding, func(a, b Constraints) int {
		return cmp.Or(
			cmp.Compare(a.count(), b.count()),
			cmp.Compare(truth(a.TaskQueueName != ""), truth(b.TaskQueueName != "")),
			cmp.Compare(truth(a.Namespace != ""), truth(b.Namespace != "")),
		)
	})]
}

func (c Constraints) count() int {
	return truth(c.Namespace != "") + truth(c.TaskQueueName != "") + truth(c.TaskType != 0)
}

func TestLookupAgainstDumb(t *testing.T) {
	names := rapid.SampledFrom([]string{"", "a", "b", "c"})
	types := rapid.SampledFrom([]partition.TaskType{0, partition.Workflow, partition.Activity, partition.Dispatch})
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.MapOf(rapid.Custom(func(t *rapid.T) Constraints {
			return Constraints{names.Draw(t, "namespace"), names.Draw(t, "name"), types.Draw(t, "type")}
		}), rapid.IntRange(1, 1000)).Draw(t, "entries")
		overrides := make([]Override, 0, len(entries))
		for c, v := range entries {
			overrides = append(overrides, writes.With(v, c))
		}
		s, err := NewSnapshot(overrides...)
		if err != nil {
			t.Fatal(err)
		}
		q := queueOf(names.Draw(t, "ns asked"), names.Draw(t, "name asked"), types.Draw(t, "type asked"))
		if got, want := writes.Get(s, q), dumbLookup(entries, q, 4); got != want {
			t.Fatalf("%v: %d, want %d", q, got, want)
		}
	})
}
