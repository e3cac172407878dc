package memory

import (
	"strings"
	"testing"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
)

// TestCheck plays, for each law, a story whose last mutation breaks it.
func TestCheck(t *testing.T) {
	one, two := &task.Task{ID: 1, Priority: 3}, &task.Task{ID: 2, Priority: 3}
	retried := &task.Task{ID: 1, Priority: 3, Attempts: 1, Deliveries: 1}
	add := row.Mutation{PutTasks: []row.Task{{Task: one}, {Task: two}}}
	key := row.TaskKey{Priority: 3, ID: 1}
	sleep := row.Mutation{DeleteTasks: []row.TaskKey{key}, PutScheduled: []row.Task{{Task: retried, Due: 50}}}
	for _, tc := range []struct {
		name  string
		story []row.Mutation
		want  string // in the one complaint about the last mutation; empty: none
	}{
		{"add, lease, complete", []row.Mutation{add, {PutLeases: []row.Lease{{ID: 1}}}, {DeleteTasks: []row.TaskKey{key}, DeleteLeases: []task.ID{1}}}, ""},
		{"two retries, die", []row.Mutation{
			add, sleep,
			{DeleteScheduled: []row.DueKey{{Due: 50, ID: 1}}, PutScheduled: []row.Task{{Task: retried, Due: 60}}},
			{DeleteScheduled: []row.DueKey{{Due: 60, ID: 1}}, PutDead: []row.DeadTask{{Task: retried}}},
			{PutDead: []row.DeadTask{{Task: retried}}},
		}, ""},
		{"scheduled row rewritten in place", []row.Mutation{add, sleep, {PutScheduled: []row.Task{{Task: retried, Due: 50}}}}, ""},
		{"range over rows, add above", []row.Mutation{
			add, {DeleteRanges: []row.Range{{Priority: 3, From: 1, To: 2}}}, {PutTasks: []row.Task{{Task: &task.Task{ID: 3, Priority: 3}}}},
		}, ""},
		{"two homes", []row.Mutation{add, {PutScheduled: []row.Task{{Task: retried, Due: 50}}}}, "law R1"},
		{"dead and scheduled", []row.Mutation{add, sleep, {PutDead: []row.DeadTask{{Task: retried}}}}, "law R1"},
		{"two due times", []row.Mutation{add, sleep, {PutScheduled: []row.Task{{Task: retried, Due: 60}}}}, "law R1"},
		{"task row written twice", []row.Mutation{add, {DeleteTasks: []row.TaskKey{key}}, {PutTasks: []row.Task{{Task: one}}}}, "law R2"},
		{"lease beside nothing", []row.Mutation{add, {PutLeases: []row.Lease{{ID: 9}}}}, "law R3"},
		{"lease left behind", []row.Mutation{add, {PutLeases: []row.Lease{{ID: 1}}}, {DeleteTasks: []row.TaskKey{key}}}, "law R3"},
		{"add below a range", []row.Mutation{
			{PutTasks: []row.Task{{Task: two}}}, {DeleteRanges: []row.Range{{Priority: 3, From: 1, To: 2}}}, {PutTasks: []row.Task{{Task: one}}},
		}, "law R4"},
		{"counts in a task row", []row.Mutation{{PutTasks: []row.Task{{Task: retried}}}}, "has a due time or counts"},
		{"no due time", []row.Mutation{{PutScheduled: []row.Task{{Task: one}}}}, "has no due time"},
		{"no such priority", []row.Mutation{{PutTasks: []row.Task{{Task: &task.Task{ID: 1, Priority: 6}}}}}, "priority 6"},
		{"lease deleted and put", []row.Mutation{add, {DeleteLeases: []task.ID{1}, PutLeases: []row.Lease{{ID: 1}}}}, "deleted and put"},
	} {
		r := newRows()
		var complaints []string
		for i, m := range tc.story {
			if len(complaints) > 0 {
				t.Errorf("%s: step %d: %q", tc.name, i-1, complaints)
			}
			complaints = nil
			r.check(&m, func(err error) { complaints = append(complaints, err.Error()) })
			if tc.want == "" || i < len(tc.story)-1 {
				r.apply(&m)
			}
		}
		if tc.want == "" && len(complaints) > 0 {
			t.Errorf("%s: complains %q", tc.name, complaints)
		}
		if tc.want != "" && (len(complaints) != 1 || !strings.Contains(complaints[0], tc.want)) {
			t.Errorf("%s: complains %q, want one with %q", tc.name, complaints, tc.want)
		}
	}
}
