package memory

import (
	"fmt"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
)

// checker collects what one mutation breaks, before it is applied.
type checker struct {
	rows   *rows
	m      *row.Mutation
	broken func(error)

	deletedTasks     map[row.TaskKey]bool
	deletedScheduled map[row.DueKey]bool
	deletedLeases    map[task.ID]bool
	deletedDead      map[task.ID]bool
}

// check reports each law of package row that m breaks if it is applied to r.
func (r *rows) check(m *row.Mutation, broken func(error)) {
	c := checker{
		rows: r, m: m, broken: broken,
		deletedTasks:     setOf(m.DeleteTasks),
		deletedScheduled: setOf(m.DeleteScheduled),
		deletedLeases:    setOf(m.DeleteLeases),
		deletedDead:      setOf(m.DeleteDead),
	}
	c.taskPuts()
	c.otherPuts()
	c.homes()
	r.ranges = append(r.ranges, m.DeleteRanges...)
}

func setOf[K comparable](keys []K) map[K]bool {
	set := make(map[K]bool, len(keys))
	for _, k := range keys {
		set[k] = true
	}
	return set
}

func (c *checker) addf(format string, args ...any) {
	c.broken(fmt.Errorf("partition %s: "+format, append([]any{c.m.Partition}, args...)...))
}

// covered reports whether an earlier range delete covered the key.
func (c *checker) covered(k row.TaskKey) bool {
	for _, d := range c.rows.ranges {
		if d.Priority == k.Priority && d.From <= k.ID && k.ID <= d.To {
			return true
		}
	}
	return false
}

func (c *checker) everWritten(id task.ID) bool {
	for _, tree := range c.rows.written {
		if tree.Has(id) {
			return true
		}
	}
	return false
}

func (c *checker) taskPuts() {
	for _, t := range c.m.PutTasks {
		id, priority := t.Task.ID, t.Task.Priority
		if priority < task.MinPriority || priority > task.MaxPriority {
			c.addf("task %s has priority %d", id, priority)
			continue
		}
		level := priority.Level()
		if t.Due != 0 || t.Task.Attempts != 0 || t.Task.Deliveries != 0 {
			c.addf("the task row of task %s has a due time or counts: %+v", id, t)
		}
		if c.deletedTasks[row.TaskKey{Priority: priority, ID: id}] {
			c.addf("task %s is deleted and put in one mutation", id)
		}
		if c.everWritten(id) {
			c.addf("law R2: the task row of task %s is written again", id)
		}
		if c.covered(row.TaskKey{Priority: priority, ID: id}) {
			c.addf("law R4: task %s is put where a range was deleted", id)
		}
		c.rows.written[level].ReplaceOrInsert(id, struct{}{})
	}
}

func (c *checker) otherPuts() {
	for _, t := range c.m.PutScheduled {
		if t.Due <= 0 {
			c.addf("the scheduled row of task %s has no due time: %+v", t.Task.ID, t)
		}
		if c.deletedScheduled[row.DueKey{Due: t.Due, ID: t.Task.ID}] {
			c.addf("scheduled task %s is deleted and put in one mutation", t.Task.ID)
		}
	}
	for _, l := range c.m.PutLeases {
		if c.deletedLeases[l.ID] {
			c.addf("the lease of task %s is deleted and put in one mutation", l.ID)
		}
	}
	for _, d := range c.m.PutDead {
		if c.deletedDead[d.Task.ID] {
			c.addf("dead task %s is deleted and put in one mutation", d.Task.ID)
		}
	}
}

// homes looks at each task that the mutation touches as it will be: at most one
// row with the task (R1), and a lease row only beside it (R3).
func (c *checker) homes() {
	touched := make(map[task.ID]bool)
	for _, t := range c.m.PutTasks {
		touched[t.Task.ID] = true
	}
	for _, t := range c.m.PutScheduled {
		touched[t.Task.ID] = true
	}
	for _, d := range c.m.PutDead {
		touched[d.Task.ID] = true
	}
	for _, l := range c.m.PutLeases {
		touched[l.ID] = true
	}
	for _, k := range c.m.DeleteTasks {
		touched[k.ID] = true
	}
	for _, k := range c.m.DeleteScheduled {
		touched[k.ID] = true
	}
	after := c.counts(touched)
	for id := range touched {
		if n := after.tasks[id] + after.scheduled[id] + after.dead[id]; n > 1 {
			c.addf("law R1: task %s has %d task, %d scheduled and %d dead rows", id, after.tasks[id], after.scheduled[id], after.dead[id])
		}
		if after.leases[id] > 0 && after.tasks[id]+after.scheduled[id] == 0 {
			c.addf("law R3: task %s has a lease row, but no task or scheduled row", id)
		}
	}
}

// census counts rows by task id and kind.
type census struct{ tasks, scheduled, leases, dead map[task.ID]int }

// counts the rows of the given tasks as they will be: those that stay,
// and those that are put in no other's place.
func (c *checker) counts(of map[task.ID]bool) census {
	n := census{map[task.ID]int{}, map[task.ID]int{}, map[task.ID]int{}, map[task.ID]int{}}
	for id := range of {
		c.countStaying(n, id)
	}
	for _, t := range c.m.PutTasks {
		n.tasks[t.Task.ID]++
	}
	for _, t := range c.m.PutScheduled {
		if old, ok := c.rows.due[t.Task.ID]; !ok || old != t.Due {
			n.scheduled[t.Task.ID]++
		}
	}
	for _, d := range c.m.PutDead {
		n.dead[d.Task.ID] = 1
	}
	for _, l := range c.m.PutLeases {
		n.leases[l.ID] = 1
	}
	return n
}

func (c *checker) countStaying(n census, id task.ID) {
	for level, tree := range c.rows.tasks {
		key := row.TaskKey{Priority: task.Priority(level + 1), ID: id}
		if tree.Has(id) && !c.deletedTasks[key] && !c.inRange(key) {
			n.tasks[id]++
		}
	}
	if due, ok := c.rows.due[id]; ok && !c.deletedScheduled[row.DueKey{Due: due, ID: id}] {
		n.scheduled[id]++
	}
	if c.rows.leases.Has(id) && !c.deletedLeases[id] {
		n.leases[id]++
	}
	if c.rows.dead.Has(id) && !c.deletedDead[id] {
		n.dead[id]++
	}
}

func (c *checker) inRange(k row.TaskKey) bool {
	for _, d := range c.m.DeleteRanges {
		if d.Priority == k.Priority && d.From <= k.ID && k.ID <= d.To {
			return true
		}
	}
	return false
}
