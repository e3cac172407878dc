package ledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

var start = time.Unix(2_000_000_000, 0)

func newLedger(limits Limits) *Ledger {
	return New(Config{
		Partition: partition.Queue{Namespace: "ns", Name: "q", Type: partition.Activity}.Partition(0),
		Epoch:     7, Limits: limits, Rand: rand.New(rand.NewPCG(1, 1)),
	}, start)
}

func (l *Ledger) addOne(t *task.Task) *Entry {
	if t.Priority == 0 {
		t.Priority = task.DefaultPriority
	}
	return l.Add(t, start, Ticket{Call: "add"})
}

// store commits all there is to commit.
func (l *Ledger) store() {
	for l.Take(start) != nil {
		l.Stored()
	}
}

func TestAdmitNamesTheLimit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		limits Limits
		spoil  func(*Ledger)
		reason task.Reason
		says   string
	}{
		{"items", Limits{PendingItems: 3}, func(l *Ledger) { l.addOne(&task.Task{}); l.addOne(&task.Task{}) }, task.Quota, "matching.maxPendingItems"},
		{"bytes", Limits{PendingBytes: 1000}, func(l *Ledger) { l.addOne(&task.Task{Payload: make([]byte, 900)}) }, task.Quota, "matching.maxPendingBytes"},
		{"closing", Limits{}, func(l *Ledger) { l.Close() }, task.PartitionClosing, "unloaded"},
		{"lost", Limits{}, func(l *Ledger) { l.Lose(task.Ownership{Epoch: 9}, "stolen") }, task.NotOwner, "stolen"},
		{"out of ids", Limits{}, func(l *Ledger) { l.seq = maxSeq - 1 }, task.NotReady, "epoch 7"},
	} {
		l := newLedger(tc.limits)
		if err := l.Admit(2, 500); err != nil {
			t.Errorf("%s: refused at first: %v", tc.name, err)
		}
		tc.spoil(l)
		err := l.Admit(2, 500)
		var e *task.Error
		if !errors.As(err, &e) || e.Reason != tc.reason {
			t.Errorf("%s: error %v, want %v", tc.name, err, tc.reason)
			continue
		}
		if !strings.Contains(fmt.Sprint(e, e.Limit), tc.says) {
			t.Errorf("%s: error %v %v does not say %q", tc.name, e, e.Limit, tc.says)
		}
	}
}

// TestAdmitTakesWhatIsAlone: a batch that is larger than a limit would be
// refused for ever, so it is taken when nothing else is on its way.
func TestAdmitTakesWhatIsAlone(t *testing.T) {
	l := newLedger(Limits{PendingItems: 3, PendingBytes: 1000})
	if err := l.Admit(10, 5000); err != nil {
		t.Errorf("alone: %v", err)
	}
	l.addOne(&task.Task{})
	if err := l.Admit(10, 500); err == nil {
		t.Error("beside another: not refused")
	}
}

func TestExhaustedWhenIDsAreUsedUp(t *testing.T) {
	l := newLedger(Limits{})
	l.seq = maxSeq - 1
	if l.Exhausted() {
		t.Error("exhausted with one id left")
	}
	if e := l.addOne(&task.Task{}); e.ID.Seq() != maxSeq || e.ID.Epoch() != 7 || !l.Exhausted() {
		t.Errorf("the last id is %d of epoch %d, exhausted %v", e.ID.Seq(), e.ID.Epoch(), l.Exhausted())
	}
}

// TestEverEarlierDueTimes is the way to overfill the window: each task must join
// it, as it is due before all that are in it.
func TestEverEarlierDueTimes(t *testing.T) {
	l := newLedger(Limits{DelayedItems: 10})
	for i := range 1000 {
		l.addOne(&task.Task{NotBefore: task.At(start.Add(time.Duration(2000-i) * time.Second))})
		l.store()
		if n := l.Counts().Memory; n > 21 {
			t.Fatalf("%d tasks in memory after %d adds", n, i+1)
		}
	}
	if !l.Windowed() || l.Backlog() != 1000 {
		t.Errorf("windowed %v, backlog %d", l.Windowed(), l.Backlog())
	}
}

// TestBodiesOfLeasedTasksAreBounded: beyond the budget only the store has them,
// and they are fetched when they are needed.
func TestBodiesOfLeasedTasksAreBounded(t *testing.T) {
	l := newLedger(Limits{LeasedBytes: 10_000})
	records := make(map[task.ID]row.Record)
	for range 20 {
		e := l.addOne(&task.Task{Payload: make([]byte, 2000)})
		l.store()
		if _, ok := l.Grant(e, "w", 0, start); !ok {
			t.Fatal("not granted")
		}
		records[e.ID] = row.Record{ID: e.ID, Found: true, Kind: row.Tasks, Task: row.Task{Task: e.Task}}
		l.store()
	}
	if l.leased > 13_000 {
		t.Errorf("%d bytes of leased bodies, the limit is 10000", l.leased)
	}
	l.Output()
	now := start.Add(31 * time.Second)
	l.Tick(now)
	warm := len(l.Output().Offer)
	read, ok := l.NextRead()
	if !ok || warm+len(read.IDs) != 20 || warm == 20 {
		t.Fatalf("%d tasks offered and %d to be fetched of 20", warm, len(read.IDs))
	}
	found := make([]row.Record, 0, len(read.IDs))
	for _, id := range read.IDs {
		found = append(found, records[id])
	}
	l.LookedUp(found, now)
	if offered := l.Output().Offer; len(offered) != len(read.IDs) || offered[0].Task == nil {
		t.Errorf("%d tasks offered after the fetch, want %d", len(offered), len(read.IDs))
	}
}

// TestBodiesOfManyExpiredLeasesComeInTurn: when the workers of many tasks die,
// their bodies are read as the read-ahead has room for them, and all are.
func TestBodiesOfManyExpiredLeasesComeInTurn(t *testing.T) {
	const many, bodySize = 200, 2000
	l := newLedger(Limits{LeasedBytes: 1, ReadAheadBytes: 10_000})
	bodies := make(map[task.ID]*task.Task)
	for range many {
		e := l.addOne(&task.Task{Payload: make([]byte, bodySize)})
		bodies[e.ID] = e.Task
		l.Grant(e, "w", 0, start)
		l.store()
	}
	l.Output()
	now := start.Add(time.Minute)
	l.Tick(now)
	came := 0
	for {
		read, ok := l.NextRead()
		if !ok {
			break
		}
		records := make([]row.Record, len(read.IDs))
		for i, id := range read.IDs {
			records[i] = row.Record{ID: id, Found: true, Kind: row.Tasks, Task: row.Task{Task: bodies[id]}}
		}
		l.LookedUp(records, now)
		if _, more := l.NextRead(); more || l.readyHeld > 2*minReady*2*bodySize {
			t.Fatalf("%d bytes of bodies are ready, and more are to be read: %v", l.readyHeld, more)
		}
		for _, e := range l.Output().Offer {
			came++
			l.Grant(e, "w", 0, now)
		}
		l.store()
	}
	if came != many {
		t.Errorf("%d of %d tasks came back", came, many)
	}
}

// TestTakeWaitsForBodies: a row that moves needs its body. While that is being
// read there is nothing to take, and a lane that were told so would spin.
func TestTakeWaitsForBodies(t *testing.T) {
	l := newLedger(Limits{LeasedBytes: 1})
	e := l.addOne(&task.Task{})
	l.store()
	body := e.Task
	g, _ := l.Grant(e, "w", 0, start)
	l.store()
	l.Output()
	l.Fail(g, Failure{}, start, Ticket{Call: "fail"})
	for _, closing := range []bool{false, true} {
		if closing {
			l.Close()
		}
		if m := l.Take(start); m != nil || l.WantsTake() {
			t.Fatalf("closing %v: the body is not read, takes %+v and wants to take more: %v", closing, m, l.WantsTake())
		}
	}
	read, _ := l.NextRead()
	l.LookedUp([]row.Record{{ID: read.IDs[0], Found: true, Kind: row.Tasks, Task: row.Task{Task: body}}}, start)
	if !l.WantsTake() {
		t.Fatal("the body is there and nothing is to be taken")
	}
	l.store()
	if got := l.Output().Answers; len(got) != 1 || got[0].Call != "fail" || got[0].Err != nil || !l.Closed() {
		t.Errorf("answers %+v, closed %v", got, l.Closed())
	}
}

// TestReleaseWaitsForLookups: after the release nothing is read any more, so who
// waits for a lookup is answered before, and who comes late is refused.
func TestReleaseWaitsForLookups(t *testing.T) {
	l := newLedger(Limits{})
	l.seq = 10
	g := task.Grant{ID: task.MakeID(7, 3), Delivery: 1, Epoch: 7}
	l.Complete(g, Ticket{Call: "early"})
	l.Close()
	l.Complete(g, Ticket{Call: "late"})
	if got := l.Output().Answers; len(got) != 1 || got[0].Call != "late" || !errors.Is(got[0].Err, task.PartitionClosing) {
		t.Fatalf("answers %+v, want the late one to be refused", got)
	}
	if l.WantsTake() || l.Take(start) != nil {
		t.Fatal("it is released while a caller waits for a lookup")
	}
	read, _ := l.NextRead()
	l.LookedUp([]row.Record{{ID: read.IDs[0]}}, start)
	if got := l.Output().Answers; len(got) != 1 || !got[0].AlreadyFinished || !l.WantsTake() {
		t.Fatalf("answers %+v, wants to take: %v", got, l.WantsTake())
	}
	if l.store(); !l.Closed() {
		t.Error("it is not released")
	}
}

// TestMissingRow: a row that the store should have and does not is let go.
func TestMissingRow(t *testing.T) {
	l := newLedger(Limits{LeasedBytes: 1})
	e := l.addOne(&task.Task{})
	l.store()
	l.Grant(e, "w", 0, start)
	l.store()
	l.Tick(start.Add(time.Hour))
	read, _ := l.NextRead()
	l.LookedUp([]row.Record{{ID: read.IDs[0]}}, start)
	if c := l.Counts(); c.Missing != 1 || c.Memory != 0 {
		t.Errorf("counts %+v", c)
	}
}

// TestSweep: runs of deleted rows are covered by ranges, rows that live never.
func TestSweep(t *testing.T) {
	l := newLedger(Limits{SweepRows: 90, SweepSpan: 5})
	all := make([]*Entry, 100)
	for i := range all {
		all[i] = l.addOne(&task.Task{})
	}
	l.store()
	keep := map[int]bool{20: true, 23: true, 60: true}
	for i, e := range all {
		if !keep[i] {
			g, _ := l.Grant(e, "w", 0, start)
			l.Complete(g, Ticket{Call: "complete"})
		}
	}
	l.store() // deletes, and finds that enough were deleted
	more := l.addOne(&task.Task{})
	l.SetLimits(Limits{SweepRows: 1, SweepSpan: 5})
	l.levels[task.DefaultPriority.Level()].deleted = 1000
	m := l.Take(start)
	got := make([]string, 0, len(m.DeleteRanges))
	for _, r := range m.DeleteRanges {
		got = append(got, fmt.Sprintf("%d-%d", r.From.Seq(), r.To.Seq()))
		for _, e := range append(all[20:21:21], all[23], all[60], more) {
			if r.From <= e.ID && e.ID <= r.To {
				t.Errorf("range %d-%d covers living task %d", r.From.Seq(), r.To.Seq(), e.ID.Seq())
			}
		}
	}
	if want := "[25-60 62-100]"; fmt.Sprint(got) != want {
		t.Errorf("ranges %v, want %s", got, want)
	}
	if m.Meta == nil || m.Meta.Acks[task.DefaultPriority.Level()].Seq() != 20 {
		t.Errorf("meta %+v, want an ack level of 20", m.Meta)
	}
}

// TestRepeatedCompletionsAreBounded: while the store hangs, a caller that
// repeats itself does not pile up.
func TestRepeatedCompletionsAreBounded(t *testing.T) {
	l := newLedger(Limits{})
	e := l.addOne(&task.Task{})
	l.store()
	g, _ := l.Grant(e, "w", 0, start)
	for range 100 {
		l.Complete(g, Ticket{Call: "complete"})
	}
	if n := len(l.waits); n > maxWaits {
		t.Errorf("%d waits", n)
	}
	refused := 0
	for _, a := range l.Output().Answers {
		if errors.Is(a.Err, task.OutcomeUnknown) {
			refused++
		}
	}
	if refused != 100-maxWaits {
		t.Errorf("%d refused, want %d", refused, 100-maxWaits)
	}
}

func TestBackoff(t *testing.T) {
	l := newLedger(Limits{})
	p := task.RetryPolicy{Initial: time.Second, Factor: 3, Max: 20 * time.Second, Jitter: 1e-12}
	for attempts, want := range map[uint32]time.Duration{1: time.Second, 2: 3 * time.Second, 3: 9 * time.Second, 4: 20 * time.Second, 400: 20 * time.Second} {
		if got := l.backoff(p, attempts).Round(time.Millisecond); got != want {
			t.Errorf("after %d attempts: %v, want %v", attempts, got, want)
		}
	}
	p.Jitter = 0.5
	for range 1000 {
		if got := l.backoff(p, 2); got < 1500*time.Millisecond || got > 4500*time.Millisecond {
			t.Fatalf("jitter of one half gives %v around 3s", got)
		}
	}
}
