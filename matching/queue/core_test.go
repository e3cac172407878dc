package queue

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/taskring/taskring/matching/backlog"
	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/store/memory"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

var testPartition = partition.Queue{Namespace: "ns", Name: "q", Type: partition.Activity}.Partition(0)

// TestScripts plays the stories in testdata. Each begins with what it shows.
// Run with -rewrite to accept changed output, and read the difference: it is
// what users of a partition would see.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		l := newLab(t)
		datadriven.RunTest(t, path, func(_ *testing.T, d *datadriven.TestData) string {
			return l.run(d)
		})
	})
}

// lab is a core on a memory store, with virtual time and names for tasks.
type lab struct {
	t      *testing.T
	now    time.Time
	fault  memory.CommitFault
	store  *memory.Store
	core   *Core
	names  map[task.ID]string
	grants map[string][]task.Grant // by task name, in order
	landed func()                  // brings the outcome of the commit in flight
	writes int                     // records written so far
	out    strings.Builder
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{
		t:     t,
		now:   time.Unix(2_000_000_000, 0),
		names: make(map[task.ID]string), grants: make(map[string][]task.Grant),
	}
	l.store = memory.New(memory.Options{
		Commit: func(ms []*row.Mutation) []memory.CommitFault {
			l.writes += ms[0].Records()
			return []memory.CommitFault{l.fault}
		},
		Broken: func(err error) { t.Errorf("a law of rows is broken: %v", err) },
	})
	l.open()
	return l
}

func (l *lab) open() {
	opened, err := backlog.Open(context.Background(), l.store, task.Holder{RunID: "run"}, testPartition)
	if err != nil {
		l.t.Fatal(err)
	}
	l.core = NewCore(ledger.Config{
		Partition: testPartition, Epoch: opened.Epoch, Meta: opened.Meta, Leases: opened.Leases,
		Rand:   rand.New(rand.NewPCG(1, 2)),
		Limits: ledger.Limits{MaxAttempts: 3, MaxDeliveries: 5, Retry: task.RetryPolicy{Jitter: 1e-9}, ReadAheadItems: 16, DelayedItems: 2},
	}, l.now)
	l.landed = nil
	l.settle()
}

// settle prints what followed from the last event.
func (l *lab) settle() {
	effects := l.core.Settle(l.now)
	for _, a := range effects.Answers {
		l.printf("%s", l.answer(a))
	}
	for _, p := range effects.Ended {
		if len(p.Result.Grants) == 0 {
			l.printf("poll %s ends empty: %s", p.ID, p.Result.Empty)
		}
		for _, g := range p.Result.Grants {
			name := l.names[g.Grant.ID]
			l.grants[name] = append(l.grants[name], g.Grant)
			l.printf("poll %s gets %s delivery=%d attempt=%d", p.ID, name, g.Grant.Delivery, g.Attempt)
		}
	}
}

func (l *lab) answer(a ledger.Answer) string {
	s := a.Call.(string) + " " + l.names[a.ID] + ": "
	if a.Call == "add" && l.names[a.ID] == "" {
		s = "add: "
	}
	switch {
	case a.Err != nil:
		s += a.Err.Error()
	case a.AlreadyFinished:
		s += "ok, already finished"
	case a.Dead:
		s += "ok, dead"
	case a.NextAttempt != 0:
		s += fmt.Sprintf("ok, next attempt in %v", a.NextAttempt.Sub(task.At(l.now)).Round(time.Millisecond))
	default:
		s += "ok"
	}
	return s
}

func (l *lab) printf(format string, args ...any) { fmt.Fprintf(&l.out, format+"\n", args...) }

// run carries out one command of a script.
func (l *lab) run(d *datadriven.TestData) string {
	l.out.Reset()
	command, ok := map[string]func(*datadriven.TestData){
		"add": l.cmdAdd, "poll": l.cmdPoll, "cancel": l.cmdCancel,
		"complete": l.cmdGrant, "fail": l.cmdGrant, "release": l.cmdGrant, "heartbeat": l.cmdGrant,
		"take": l.cmdTake, "land": l.cmdLand, "commit": l.cmdCommit, "read": l.cmdRead,
		"advance": l.cmdAdvance, "crash": l.cmdCrash, "unload": l.cmdUnload, "steal": l.cmdSteal, "show": l.cmdShow,
	}[d.Cmd]
	if !ok {
		d.Fatalf(l.t, "unknown command %s", d.Cmd)
	}
	command(d)
	if l.out.Len() == 0 {
		return "-\n"
	}
	return l.out.String()
}

// cmdAdd is add NAME... [prio=N] [delay=D] [expiry=D] [attempts=N] [bytes=N].
func (l *lab) cmdAdd(d *datadriven.TestData) {
	proto := task.Task{Priority: task.DefaultPriority}
	var names []string
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) == 0 {
			names = append(names, arg.Key)
			continue
		}
		switch v := arg.Vals[0]; arg.Key {
		case "prio":
			proto.Priority = task.Priority(l.atoi(v))
		case "delay":
			proto.NotBefore = task.At(l.now.Add(l.span(v)))
		case "expiry":
			proto.ExpiresAt = task.At(l.now.Add(l.span(v)))
		case "attempts":
			proto.MaxAttempts = uint32(l.atoi(v))
		case "bytes":
			proto.Payload = make([]byte, l.atoi(v))
		default:
			d.Fatalf(l.t, "unknown argument %s", arg.Key)
		}
	}
	tasks := make([]*task.Task, len(names))
	for i := range tasks {
		one := proto
		tasks[i] = &one
	}
	if err := l.core.Add(tasks, "add", l.now); err != nil {
		l.printf("add: %v", err)
		return
	}
	for i, name := range names {
		l.names[tasks[i].ID] = name
	}
	l.settle()
}

// cmdPoll is poll NAME [want=N] [min=N].
func (l *lab) cmdPoll(d *datadriven.TestData) {
	want, lowest := 1, 0
	d.MaybeScanArgs(l.t, "want", &want)
	d.MaybeScanArgs(l.t, "min", &lowest)
	l.core.Wait(&Poll{ID: d.CmdArgs[0].Key}, want, task.Priority(lowest))
	l.settle()
}

// cmdCancel is cancel NAME.
func (l *lab) cmdCancel(d *datadriven.TestData) {
	if p := l.core.Find(d.CmdArgs[0].Key); p != nil {
		l.core.End(p, PollResult{Empty: Cancelled})
	}
	l.settle()
}

// cmdGrant is complete|fail|release|heartbeat NAME [delivery=N] [final].
func (l *lab) cmdGrant(d *datadriven.TestData) {
	grants := l.grants[d.CmdArgs[0].Key]
	delivery := len(grants) // the latest one
	d.MaybeScanArgs(l.t, "delivery", &delivery)
	one := grants[delivery-1 : delivery]
	switch d.Cmd {
	case "complete":
		l.core.Complete(one, d.Cmd)
	case "fail":
		l.core.Fail(one, ledger.Failure{Message: "no luck", NonRetryable: d.HasArg("final")}, d.Cmd, l.now)
	case "release":
		l.core.Release(one, d.Cmd, l.now)
	case "heartbeat":
		l.core.Heartbeat(one, d.Cmd, l.now)
	}
	l.settle()
}

// cmdTake is take [fault=refuse|apply-now|apply-never]: the lane takes the
// mutation and hands it to the store; the core does not know the outcome yet.
func (l *lab) cmdTake(d *datadriven.TestData) {
	l.fault = memory.Normal
	if d.HasArg("fault") {
		var name string
		d.ScanArgs(l.t, "fault", &name)
		l.fault = map[string]memory.CommitFault{"refuse": memory.Refuse, "apply-now": memory.ApplyNow, "apply-never": memory.ApplyNever}[name]
	}
	m := l.core.Take(l.now)
	l.settle()
	if m == nil {
		l.printf("nothing to write")
		return
	}
	l.printMutation(m)
	o := l.store.Commit(context.Background(), []*row.Mutation{m})[0]
	l.landed = func() { l.land(o) }
}

// land tells the core the outcome of its commit, as the lane does.
func (l *lab) land(o store.Outcome) {
	l.printf("%s", o.Result)
	if o.Result == store.Unknown {
		l.resolve()
	} else {
		l.core.Committed(o)
	}
	l.settle()
}

// resolve takes the partition again and reads what became of the commit.
func (l *lab) resolve() {
	got, err := l.store.Acquire(context.Background(), task.Holder{RunID: "run"}, []partition.ID{testPartition})
	if err != nil {
		l.t.Fatal(err)
	}
	records, err := l.store.Get(context.Background(), testPartition, l.core.Unresolved())
	if err != nil {
		l.t.Fatal(err)
	}
	l.core.Resolve(got[0], records)
}

func (l *lab) printMutation(m *row.Mutation) {
	for _, r := range m.DeleteRanges {
		l.printf("write: delete range of priority %d", r.Priority)
	}
	for _, r := range m.PutTasks {
		l.printf("write: task %s%s", l.names[r.Task.ID], folded(r.Folded))
	}
	for _, r := range m.PutScheduled {
		l.printf("write: scheduled %s%s", l.names[r.Task.ID], folded(r.Folded))
	}
	for _, r := range m.PutLeases {
		l.printf("write: lease %s%s", l.names[r.ID], folded(&r))
	}
	for _, r := range m.PutDead {
		l.printf("write: dead %s (%s)", l.names[r.Task.ID], r.Reason)
	}
	for _, k := range m.DeleteTasks {
		l.printf("write: delete task %s", l.names[k.ID])
	}
	for _, k := range m.DeleteScheduled {
		l.printf("write: delete scheduled %s", l.names[k.ID])
	}
	for _, id := range m.DeleteLeases {
		l.printf("write: delete lease %s", l.names[id])
	}
	for _, id := range m.DeleteDead {
		l.printf("write: delete dead %s", l.names[id])
	}
	if m.Meta != nil {
		l.printf("write: meta may_hold=%v released=%v", m.Meta.MayHold, m.Meta.Released)
	}
}

func folded(l *row.Lease) string {
	if l == nil {
		return ""
	}
	state := "ended"
	if l.Live {
		state = "live"
	}
	return fmt.Sprintf(" [delivery %d %s, attempts %d]", l.Delivery, state, l.Attempts)
}

// cmdLand brings the outcome of the mutation taken last.
func (l *lab) cmdLand(_ *datadriven.TestData) {
	if l.landed != nil {
		landed := l.landed
		l.landed = nil
		landed()
	}
}

// cmdCommit takes and lands until nothing is left to write.
func (l *lab) cmdCommit(d *datadriven.TestData) {
	for {
		l.cmdTake(d)
		if l.landed == nil {
			return
		}
		l.cmdLand(d)
	}
}

// cmdRead carries out reads until the core wants none.
func (l *lab) cmdRead(_ *datadriven.TestData) {
	for {
		r, ok := l.core.NextRead()
		if !ok {
			return
		}
		page, records, err := backlog.Read(context.Background(), l.store, testPartition, r)
		if err != nil {
			l.t.Fatal(err)
		}
		l.core.ReadDone(ReadResult{Read: r, Page: page, Records: records}, l.now)
		l.settle()
	}
}

// cmdAdvance is advance DURATION.
func (l *lab) cmdAdvance(d *datadriven.TestData) {
	l.now = l.now.Add(l.span(d.CmdArgs[0].Key))
	l.core.Tick(l.now)
	l.settle()
}

// cmdCrash is crash: the node dies and comes back; nobody was told anything.
func (l *lab) cmdCrash(_ *datadriven.TestData) { l.open() }

// cmdUnload closes the partition as a planned stop does, and opens it again.
func (l *lab) cmdUnload(d *datadriven.TestData) {
	l.core.Close(PollResult{Empty: Shutdown})
	l.settle()
	l.cmdCommit(d)
	if !l.core.Closed() {
		l.t.Fatal("the partition is not released")
	}
	l.open()
}

// cmdSteal is steal: another run takes the partition.
func (l *lab) cmdSteal(_ *datadriven.TestData) {
	if _, err := l.store.Acquire(context.Background(), task.Holder{RunID: "thief"}, []partition.ID{testPartition}); err != nil {
		l.t.Fatal(err)
	}
}

// cmdShow prints what memory and the store have, and how many records were written.
func (l *lab) cmdShow(_ *datadriven.TestData) {
	var lines []string
	for id, name := range l.names {
		if e := l.core.ledger.Find(id); e != nil {
			lines = append(lines, fmt.Sprintf("memory: %s %s", name, e.State))
		}
	}
	sort.Strings(lines)
	for _, line := range lines {
		l.printf("%s", line)
	}
	for p := task.MinPriority; p <= task.MaxPriority; p++ {
		l.showRows(row.Scan{Kind: row.Tasks, Priority: p, Items: 100})
	}
	for _, k := range []row.Kind{row.Scheduled, row.Leases, row.Dead} {
		l.showRows(row.Scan{Kind: k, Items: 100})
	}
	l.printf("records written: %d", l.writes)
}

func (l *lab) showRows(s row.Scan) {
	page, err := l.store.Scan(context.Background(), testPartition, s)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, r := range page.Tasks {
		l.printf("%s: %s%s", s.Kind, l.names[r.Task.ID], folded(r.Folded))
	}
	for _, r := range page.Leases {
		l.printf("%s: %s%s", s.Kind, l.names[r.ID], folded(&r))
	}
	for _, r := range page.Dead {
		l.printf("%s: %s (%s)", s.Kind, l.names[r.Task.ID], r.Reason)
	}
}

func (l *lab) atoi(s string) int {
	var n int
	if _, err := fmt.Sscan(s, &n); err != nil {
		l.t.Fatalf("%q is not a number", s)
	}
	return n
}

func (l *lab) span(s string) time.Duration {
	d, err := time.ParseDuration(s)
	if err != nil {
		l.t.Fatal(err)
	}
	return d
}
