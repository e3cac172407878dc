package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/taskring/taskring/matching/backlog"
	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/store/memory"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

var thePartition = partition.Queue{Namespace: "sim", Name: "q", Type: partition.Activity}.Partition(0)

// world is one life of a partition: the real core, its store, and the model.
type world struct {
	rng   *rand.Rand
	now   time.Time
	store *memory.Store
	core  *queue.Core
	log   strings.Builder
	bad   []string
	hits  map[string]int
	calm  bool // no faults any more

	limits  ledger.Limits
	holder  int
	commit  *commitInFlight
	read    *readInFlight
	polls   []*queue.Poll
	held    []held
	tasks   map[task.ID]*modelTask
	order   []*modelTask // by number
	pollSeq int

	stolenSince bool // another run took the partition from this core
	faultFor    memory.CommitFault
}

// held is a grant that some worker has, or once had.
type held struct {
	grant task.Grant
	m     *modelTask
}

// commitInFlight is a mutation that was taken and not settled.
type commitInFlight struct {
	ids     map[task.ID]bool
	outcome store.Outcome
}

// readInFlight is a read that was begun; its result may be taken early.
type readInFlight struct {
	result queue.ReadResult
	done   bool // the result is known, the core has not heard of it
}

func newWorld(seed uint64) *world {
	w := &world{
		rng:  rand.New(rand.NewPCG(seed, 7)),
		now:  time.Unix(2_000_000_000, 0),
		hits: make(map[string]int), tasks: make(map[task.ID]*modelTask),
		limits: ledger.Limits{
			ReadAheadItems: 4, ReadAheadBytes: 1 << 20, DelayedItems: 4, DelayedBytes: 2000, LeasedBytes: 3000,
			MaxLeases: 50, PendingItems: 60, PendingBytes: 1 << 20, Lookups: 20, MutationItems: 7, MutationBytes: 5000,
			SweepRows: 8, SweepSpan: 3, LeaseDuration: 30 * time.Second, MaxAttempts: 6, MaxDeliveries: 12,
			Retry: task.RetryPolicy{Initial: time.Second, Max: time.Minute, Factor: 2, Jitter: 0.2},
		},
	}
	w.store = memory.New(memory.Options{
		Commit: func(ms []*row.Mutation) []memory.CommitFault {
			fs := make([]memory.CommitFault, len(ms))
			for i := range fs {
				fs[i] = w.faultFor
			}
			return fs
		},
		Broken: func(err error) { w.failf("a law of rows is broken: %v", err) },
	})
	w.open()
	return w
}

func (w *world) logf(format string, args ...any) {
	fmt.Fprintf(&w.log, format+"\n", args...)
}

func (w *world) failf(format string, args ...any) {
	w.bad = append(w.bad, fmt.Sprintf(format, args...))
	w.logf("WRONG: "+format, args...)
}

func (w *world) hitf(format string, args ...any) { w.hits[fmt.Sprintf(format, args...)]++ }

// open takes the partition for a new holder and builds a core on it.
func (w *world) open() {
	w.holder++
	w.now = w.now.Add(time.Millisecond)
	opened, err := backlog.Open(ctx, w.store, task.Holder{RunID: fmt.Sprint("run", w.holder)}, thePartition)
	if err != nil {
		w.failf("open: %v", err)
		return
	}
	w.logf("open epoch=%d leases=%d mayhold=%v", opened.Epoch, len(opened.Leases), opened.Meta.MayHold)
	w.stolenSince = false
	w.core = queue.NewCore(ledger.Config{
		Partition: thePartition, Epoch: opened.Epoch, Meta: opened.Meta, Leases: opened.Leases, Dead: opened.Dead,
		Limits: w.limits, Rand: w.rng,
	}, w.now)
	w.settle()
}

// settle carries out what followed from the last event and checks the model.
func (w *world) settle() {
	effects := w.core.Settle(w.now)
	for _, a := range effects.Answers {
		w.answered(a)
	}
	for _, p := range effects.Ended {
		w.ended(p)
	}
	if w.core.Lost() {
		w.logf("lost")
		w.hitf("partition lost")
		w.dropCore(false)
		w.open()
	}
}

// crash drops the core as kill -9 does.
func (w *world) crash() {
	w.logf("crash")
	w.dropCore(true)
	w.open()
}

// dropCore forgets the core. What its callers were not told is unknown to them.
func (w *world) dropCore(crash bool) {
	for _, m := range w.order {
		m.holderGone(w, crash)
	}
	w.core, w.commit, w.read, w.polls = nil, nil, nil, nil
}

// take begins a commit when none is in flight.
func (w *world) take() {
	if w.commit != nil {
		return
	}
	m := w.core.Take(w.now)
	w.settle()
	if m == nil {
		if w.core.WantsTake() {
			w.failf("nothing was taken, and the lane is told at once to take again: it spins")
		}
		return
	}
	c := &commitInFlight{ids: make(map[task.ID]bool)}
	for _, r := range append(append([]row.Task(nil), m.PutTasks...), m.PutScheduled...) {
		c.ids[r.Task.ID] = true
		if t := w.tasks[r.Task.ID]; t != nil {
			t.phase = inFlight
		}
	}
	for _, k := range m.DeleteTasks {
		c.ids[k.ID] = true
	}
	w.commit = c
	w.faultFor = w.drawFault()
	w.logf("take records=%d fault=%d epoch=%d", m.Records(), w.faultFor, m.Epoch)
	w.hitf("mutation with range delete: %v", len(m.DeleteRanges) > 0)
	// The memory store applies at once; what is decided only later is when the
	// core hears of it.
	c.outcome = w.store.Commit(ctx, []*row.Mutation{m})[0]
}

func (w *world) drawFault() memory.CommitFault {
	if w.calm || w.rng.IntN(100) < 80 {
		return memory.Normal
	}
	return memory.CommitFault(1 + w.rng.IntN(4))
}

// land brings the outcome of the commit in flight.
func (w *world) land() {
	c := w.commit
	if c == nil {
		return
	}
	w.commit = nil
	w.logf("land %v", c.outcome.Result)
	w.countLanding(c)
	if c.outcome.Result != store.Unknown {
		for id := range c.ids {
			if t := w.tasks[id]; t != nil && t.phase == inFlight {
				t.phase = map[bool]phase{true: stored, false: unsent}[c.outcome.Result == store.Stored]
			}
		}
		w.core.Committed(c.outcome)
		w.settle()
		return
	}
	w.resolve()
}

// resolve takes the partition again after an unknown outcome, as the lane does.
func (w *world) resolve() {
	if w.rng.IntN(3) == 0 {
		w.store.ApplyLate(100)
	}
	acquired, err := w.store.Acquire(ctx, task.Holder{RunID: fmt.Sprint("run", w.holder)}, []partition.ID{thePartition})
	if err != nil {
		w.failf("acquire: %v", err)
		return
	}
	w.store.ApplyLate(100) // fenced: must do nothing
	ids := w.core.Unresolved()
	records, err := w.store.Get(ctx, thePartition, ids)
	if err != nil {
		w.failf("get: %v", err)
		return
	}
	for _, r := range records {
		if t := w.tasks[r.ID]; t != nil && t.phase == inFlight {
			t.phase = map[bool]phase{true: stored, false: unsent}[r.Found]
			w.hitf("unknown turned out stored=%v", r.Found)
		}
	}
	deposed, stolen := w.core, w.stolenSince
	w.core.Resolve(acquired[0], records)
	w.settle()
	if stolen && w.core == deposed {
		w.failf("another run had the partition in between, and its memory is trusted all the same")
	}
}

// readStep begins, carries out, or ends a read; one of them a call, so that
// other events come in between.
func (w *world) readStep() {
	switch r := w.read; {
	case r == nil:
		next, ok := w.core.NextRead()
		if !ok {
			return
		}
		w.read = &readInFlight{result: queue.ReadResult{Read: next}}
		w.logf("read begins ids=%d kind=%v", len(next.IDs), next.Scan.Kind)
	case !r.done:
		r.done = true
		if !w.calm && w.rng.IntN(10) == 0 {
			r.result.Err = memory.ErrFault
			return
		}
		r.result.Page, r.result.Records, r.result.Err = backlog.Read(ctx, w.store, thePartition, r.result.Read)
	default:
		w.read = nil
		w.logf("read ends tasks=%d records=%d err=%v", len(r.result.Page.Tasks), len(r.result.Records), r.result.Err)
		w.core.ReadDone(r.result, w.now)
		w.settle()
	}
}

// advance lets time pass and the timers fire.
func (w *world) advance(d time.Duration) {
	w.now = w.now.Add(d)
	w.core.Tick(w.now)
	w.settle()
}

// unload closes the partition as a planned stop does, and opens it again.
func (w *world) unload() {
	w.logf("unload")
	w.core.Close(queue.PollResult{Empty: queue.Shutdown})
	w.settle()
	before := w.core
	for i := 0; w.core == before && !w.core.Closed(); i++ {
		if i > 1000 {
			w.failf("the partition does not close")
			return
		}
		w.readStep()
		w.take()
		w.land()
		if w.core == before {
			w.advance(10 * time.Millisecond)
		}
	}
	if w.core == before {
		w.hitf("unloaded, drained=%v", w.core.Ledger().Drained())
		w.dropCore(false)
		w.open()
	}
}
