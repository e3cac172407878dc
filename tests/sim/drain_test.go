package sim

import (
	"fmt"
	"time"

	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

var theOne = []partition.ID{thePartition}

// drain ends a life calmly: faults stop, leases run out, and workers take and
// complete all that comes. Then P1 must hold: what was accepted is finished.
func (w *world) drain() {
	w.logf("drain")
	w.calm = true
	if w.rng.IntN(2) == 0 {
		w.crash()
	}
	quiet := 0
	for round := 0; quiet < 8 && len(w.bad) == 0; round++ {
		if round > 3000 {
			w.failf("the partition does not drain: %+v", w.core.Ledger().Counts())
			return
		}
		before := len(w.held)
		w.drainPoll()
		for range 3 {
			w.readStep()
		}
		w.take()
		w.land()
		for _, h := range w.held[before:] {
			c := &call{kind: "complete", tasks: []*modelTask{h.m}, grants: []task.Grant{h.grant}, phases: []phase{h.m.phase}}
			w.core.Complete(c.grants, c)
			w.settle()
		}
		quiet++
		if len(w.held) > before || !w.core.Ledger().Drained() || w.core.WantsTake() {
			quiet = 0
		}
		w.advance(45 * time.Second)
	}
	if len(w.bad) == 0 {
		w.checkAllFinished()
	}
}

func (w *world) drainPoll() {
	for _, p := range append([]*queue.Poll(nil), w.polls...) {
		w.core.End(p, queue.PollResult{Empty: queue.Timeout})
		w.settle()
	}
	w.pollSeq++
	p := &queue.Poll{ID: fmt.Sprint("poll", w.pollSeq)}
	w.polls = append(w.polls, p)
	w.core.Wait(p, 20, 0)
	w.settle()
}

// checkAllFinished is P1, and that the store holds nothing else.
func (w *world) checkAllFinished() {
	dead := w.deadIDs()
	for _, m := range w.order {
		expired := m.expires != 0
		if m.accepted && !m.completed && !dead[m.id] && !expired && !m.finishing {
			w.failf("P1: task %v (#%d) was accepted and is lost", m.id, m.number(w))
		}
		if m.completed && dead[m.id] {
			w.failf("P3: task %v was completed and is a dead letter", m.id)
		}
	}
	for p := task.MinPriority; p <= task.MaxPriority; p++ {
		w.mustBeEmpty(row.Scan{Kind: row.Tasks, Priority: p, Items: 10})
	}
	w.mustBeEmpty(row.Scan{Kind: row.Scheduled, Items: 10})
	w.mustBeEmpty(row.Scan{Kind: row.Leases, Items: 10})
	if n := w.core.Ledger().Backlog(); n != 0 {
		w.failf("the drained partition counts a backlog of %d", n)
	}
	if n := w.core.Ledger().Dead(); n != int64(len(dead)) {
		w.failf("the partition counts %d dead letters, the store has %d", n, len(dead))
	}
}

func (w *world) mustBeEmpty(s row.Scan) {
	page, err := w.store.Scan(ctx, thePartition, s)
	if err != nil || len(page.Tasks)+len(page.Leases) > 0 {
		w.failf("rows are left in the store: %v %d %+v %+v %v", s.Kind, s.Priority, page.Tasks, page.Leases, err)
	}
}

func (w *world) deadIDs() map[task.ID]bool {
	page, err := w.store.Scan(ctx, thePartition, row.Scan{Kind: row.Dead, Items: 100_000})
	if err != nil {
		w.failf("scan: %v", err)
	}
	ids := make(map[task.ID]bool)
	for _, d := range page.Dead {
		ids[d.Task.ID] = true
	}
	return ids
}
