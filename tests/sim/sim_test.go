package sim

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/task"
)

var (
	ctx      = context.Background()
	seedFlag = flag.Uint64("sim.seed", 0, "replay this one seed and print its story")
)

// seeds is how many lives a run plays.
func seeds() uint64 {
	if os.Getenv("TASKRING_LONG") != "" {
		return 10_000
	}
	return 200
}

// mustHit are the rows of the tables in docs/reliability.md. A run in which one
// is never hit has not tried its promise.
var mustHit = []string{
	"complete before commit: ok", "complete during commit: ok", "complete after commit: ok",
	"fail before commit: ok", "fail during commit: ok", "fail after commit: ok",
	"release before commit: ok", "release during commit: ok", "release after commit: ok",
	"lease expired before commit", "lease expired during commit", "lease expired after commit",
	"outcome stored, task waiting", "outcome stored, task held", "outcome stored, task completed", "outcome stored, task given back",
	"outcome not stored, task waiting", "outcome not stored, task held", "outcome not stored, task completed",
	"outcome lost epoch, task waiting", "outcome lost epoch, task held", "outcome lost epoch, task completed",
	"outcome unknown, task waiting", "outcome unknown, task held", "outcome unknown, task completed",
	"unknown turned out stored=true", "unknown turned out stored=false",
	"add: ok, matched=true", "add: ok, matched=false", "add: STORE_UNAVAILABLE, matched=false",
	"add: NOT_OWNER, matched=false", "add: OUTCOME_UNKNOWN, matched=true", "add: refused by a limit",
	"complete after commit: LEASE_LOST", "complete stale after commit: ok", "fail after commit: LEASE_LOST",
	"release after commit: LEASE_LOST", "heartbeat: ok", "heartbeat: LEASE_LOST",
	"crash: before commit", "crash: during commit", "crash: after commit",
	"unloaded, drained=false", "unloaded, drained=true", "partition lost", "mutation with range delete: true",
	"task died", "task expired", "spilled", "delayed spilled",
}

func TestPromises(t *testing.T) {
	if *seedFlag != 0 {
		w := play(*seedFlag)
		t.Log(w.log.String())
		if len(w.bad) > 0 {
			t.Fatal(w.bad[0])
		}
		return
	}
	hits := make(map[string]int)
	for seed := uint64(1); seed <= seeds(); seed++ {
		w := play(seed)
		if len(w.bad) > 0 {
			t.Fatalf("%s\nreplay with: go test ./tests/sim -run TestPromises -v -args -sim.seed=%d", strings.Join(w.bad, "\n"), seed)
		}
		for k, n := range w.hits {
			hits[k] += n
		}
	}
	for _, k := range mustHit {
		if hits[k] == 0 {
			t.Errorf("no seed ever hit %q: its promise was not tried", k)
		}
	}
	if t.Failed() || testing.Verbose() {
		t.Log(table(hits))
	}
}

func table(hits map[string]int) string {
	lines := make([]string, 0, len(hits))
	for k, n := range hits {
		lines = append(lines, fmt.Sprintf("%8d  %s", n, k))
	}
	sort.Slice(lines, func(i, j int) bool { return lines[i][8:] < lines[j][8:] })
	return "hits over all seeds:\n" + strings.Join(lines, "\n")
}

// play lives one life and returns its world.
func play(seed uint64) *world {
	w := newWorld(seed)
	steps := 150 + w.rng.IntN(250)
	for i := 0; i < steps && len(w.bad) == 0; i++ {
		w.step()
	}
	if len(w.bad) == 0 {
		w.drain()
	}
	return w
}

// step does one random thing.
func (w *world) step() {
	actions := []struct {
		weight int
		do     func()
	}{
		{20, w.add}, {25, w.poll}, {4, w.cancelPoll},
		{18, func() { w.settleGrant("complete") }}, {6, func() { w.settleGrant("fail") }},
		{5, func() { w.settleGrant("release") }}, {4, func() { w.settleGrant("heartbeat") }},
		{20, w.take}, {20, w.land}, {15, w.readStep},
		{8, func() { w.advance(time.Duration(w.rng.IntN(2000)) * time.Millisecond) }},
		{2, func() { w.advanceFar() }},
		{1, func() { w.countCrash(); w.crash() }}, {1, w.unload}, {1, w.stolen},
	}
	total := 0
	for _, a := range actions {
		total += a.weight
	}
	pick := w.rng.IntN(total)
	for _, a := range actions {
		if pick -= a.weight; pick < 0 {
			a.do()
			return
		}
	}
}

func (w *world) countCrash() {
	for _, m := range w.order {
		if e := w.core.Ledger().Find(m.id); e != nil {
			w.hitf("crash: %s", m.phase)
		}
	}
}

// advanceFar lets leases run out.
func (w *world) advanceFar() {
	for _, m := range w.order {
		if e := w.core.Ledger().Find(m.id); e != nil && e.State == ledger.Leased {
			w.hitf("lease expired %s", m.phase)
		}
	}
	died, expired := w.core.Ledger().Counts().Died, w.core.Ledger().Counts().Expired
	w.logf("long wait")
	w.advance(time.Duration(20+w.rng.IntN(40)) * time.Second)
	if w.core.Ledger().Counts().Died > died {
		w.hitf("task died")
	}
	if w.core.Ledger().Counts().Expired > expired {
		w.hitf("task expired")
	}
}

// stolen lets another run take the partition for a moment.
func (w *world) stolen() {
	w.logf("stolen")
	w.stolenSince = true
	if _, err := w.store.Acquire(ctx, task.Holder{RunID: fmt.Sprint("thief of ", w.holder)}, theOne); err != nil {
		w.failf("acquire: %v", err)
	}
}

func (w *world) add() {
	n := 1 + w.rng.IntN(4)
	if w.rng.IntN(8) == 0 {
		n = 15 + w.rng.IntN(20)
	}
	c := &call{kind: "add"}
	tasks := make([]*task.Task, n)
	for i := range tasks {
		tasks[i] = w.newTask()
		c.tasks = append(c.tasks, &modelTask{
			priority: tasks[i].Priority, delayed: tasks[i].NotBefore != 0, expires: tasks[i].ExpiresAt, adding: true, phase: unsent,
		})
	}
	if err := w.core.Add(tasks, c, w.now); err != nil {
		w.hitf("add: refused by a limit")
		return
	}
	for i, t := range tasks {
		m := c.tasks[i]
		m.id = t.ID
		w.tasks[t.ID] = m
		w.order = append(w.order, m)
	}
	w.logf("add %d from #%d prio=%d delayed=%v", n, c.tasks[0].number(w), c.tasks[0].priority, c.tasks[0].delayed)
	w.settle()
	if w.core.Ledger().Spilled() > 0 {
		w.hitf("spilled")
	}
	if w.core.Ledger().Windowed() {
		w.hitf("delayed spilled")
	}
}

func (w *world) newTask() *task.Task {
	t := &task.Task{Priority: task.Priority(2 + w.rng.IntN(2)), Payload: make([]byte, w.rng.IntN(200))}
	switch w.rng.IntN(10) {
	case 0, 1:
		t.NotBefore = task.At(w.now.Add(time.Duration(1+w.rng.IntN(60_000)) * time.Millisecond))
	case 2:
		t.ExpiresAt = task.At(w.now.Add(time.Duration(1+w.rng.IntN(60_000)) * time.Millisecond))
	case 3:
		t.MaxAttempts = uint32(1 + w.rng.IntN(2))
	}
	return t
}

func (w *world) poll() {
	if len(w.polls) > 5 {
		return
	}
	w.pollSeq++
	p := &queue.Poll{ID: fmt.Sprint("poll", w.pollSeq)}
	w.polls = append(w.polls, p)
	w.logf("poll %s", p.ID)
	w.core.Wait(p, 1+w.rng.IntN(4), 0)
	w.settle()
}

func (w *world) cancelPoll() {
	if len(w.polls) == 0 {
		return
	}
	p := w.polls[w.rng.IntN(len(w.polls))]
	w.logf("cancel %s", p.ID)
	w.core.End(p, queue.PollResult{Empty: queue.Cancelled})
	w.settle()
}

// settleGrant shows the core a grant that some worker has or once had.
func (w *world) settleGrant(kind string) {
	if len(w.held) == 0 {
		return
	}
	i := w.rng.IntN(len(w.held))
	if w.rng.IntN(4) > 0 { // mostly one of the latest
		i = len(w.held) - 1 - w.rng.IntN(min(len(w.held), 5))
	}
	h := w.held[i]
	c := &call{kind: kind, tasks: []*modelTask{h.m}, grants: []task.Grant{h.grant}, phases: []phase{h.m.phase}}
	stale := h.grant != h.m.live || !h.m.leased(w.now)
	if kind == "complete" && stale && !h.m.completed {
		c.phases[0] = "stale " + h.m.phase
	}
	w.logf("%s #%d delivery=%d stale=%v phase=%s", kind, h.m.number(w), h.grant.Delivery, stale, h.m.phase)
	switch kind {
	case "complete":
		h.m.finishing = true
		w.core.Complete(c.grants, c)
	case "fail":
		w.markGivenBack(h)
		w.core.Fail(c.grants, ledger.Failure{Message: "no luck", NonRetryable: w.rng.IntN(10) == 0}, c, w.now)
	case "release":
		w.markGivenBack(h)
		w.core.Release(c.grants, c, w.now)
	case "heartbeat":
		w.core.Heartbeat(c.grants, c, w.now)
	}
	w.settle()
}

// markGivenBack: from now on the task may come again; a failure may also have
// been its last.
func (w *world) markGivenBack(h held) {
	if h.m.live == h.grant {
		h.m.released = true
	}
}
