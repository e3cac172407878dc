package ledger

import (
	"math/rand/v2"
	"time"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Config makes a ledger.
type Config struct {
	Partition partition.ID // whose books they are
	Epoch     task.Epoch   // of the acquisition; every grant and id carries it
	Meta      row.Meta     // as of the acquisition
	Leases    []row.Lease  // every lease row
	Dead      int64        // dead rows, as far as they were counted
	Limits    Limits       // zero fields take the value of [DefaultLimits]
	Rand      *rand.Rand   // spreads retries; needed
}

// Ticket finds the caller that an answer is for. The ledger only carries it.
type Ticket struct {
	Call  any
	Index int
}

// Answer tells one caller what became of its request.
type Answer struct {
	Ticket
	ID              task.ID
	Err             error
	Matched         bool        // Add: a worker had the task before the store did
	AlreadyFinished bool        // Complete: there was nothing left to do
	Dead            bool        // Fail: it was the last attempt
	NextAttempt     task.Micros // Fail: when the task is due again
	Duration        time.Duration
}

// Output is what followed from the calls since the last [Ledger.Output].
type Output struct {
	Answers  []Answer
	Offer    []*Entry // became ready: show them to workers
	Withdraw []*Entry // offered before, no longer ready
}

// wait is an answer that is due once a commit covers its entry.
type wait struct {
	entry *Entry
	Answer
}

// Ledger keeps the books of one partition; see the package doc.
type Ledger struct {
	partition partition.ID
	limits    Limits
	rand      *rand.Rand
	epoch     task.Epoch
	seq       uint64
	base      time.Time
	lastWall  task.Micros
	out       Output

	tasks    map[task.ID]*Entry
	counters map[task.ID]row.Lease // ended grants of tasks that are not in memory
	leases   timers
	due      timers
	expiries timers

	levels    [task.Priorities]level
	delayed   delayedWindow
	read      reading
	readyHeld int // bytes of offered tasks
	leased    int // bytes of leased bodies

	dirty       []*Entry
	flight      []*Entry
	waits       []wait
	flightWaits []wait
	fresh       []*Entry // adds not settled yet, by id
	pending     struct{ items, bytes int }
	mutation    row.Mutation
	folds       []row.Lease
	meta        row.Meta
	metaDirty   bool
	metaSent    bool
	metaAt      int64 // when metadata was last taken, on the monotonic clock
	closing     bool
	lost        bool
	lostErr     error // what everybody is told once it is lost
	closed      bool  // the closing metadata is stored

	retryReadAt int64
	spilledRows int64 // estimate of rows that only the store has
	dead        int64 // dead rows, from those counted at the load on
	counts      Counts
}

// New returns the ledger of a partition that was just acquired. Leases run
// their whole duration again from now.
func New(c Config, now time.Time) *Ledger {
	l := &Ledger{
		partition: c.Partition, limits: c.Limits.withDefaults(), rand: c.Rand, epoch: c.Epoch, base: now,
		tasks: make(map[task.ID]*Entry), counters: make(map[task.ID]row.Lease),
		leases: timers{kind: leaseTimer}, due: timers{kind: dueTimer}, expiries: timers{kind: expiryTimer},
		meta: c.Meta, dead: c.Dead,
	}
	l.meta.Released = false
	l.read.init()
	floor := task.MakeID(c.Epoch, 0)
	for i := range l.levels {
		l.levels[i] = level{read: c.Meta.Acks[i], ack: c.Meta.Acks[i], spilled: c.Meta.MayHold, spilledTo: floor}
		if !c.Meta.MayHold {
			l.levels[i].read = floor
		}
	}
	l.delayed.spilled = c.Meta.MayHold
	if c.Meta.MayHold {
		l.spilledRows = c.Meta.Backlog
	}
	for _, lease := range c.Leases {
		l.loadLease(lease)
	}
	return l
}

// SetLimits replaces the limits. What is over a lowered limit stays.
func (l *Ledger) SetLimits(limits Limits) { l.limits = limits.withDefaults() }

// Epoch is the partition's lease epoch.
func (l *Ledger) Epoch() task.Epoch { return l.epoch }

// Lost reports whether the partition was lost to another holder, for good.
func (l *Ledger) Lost() bool { return l.lost }

// Find returns the entry of a task that is in memory, or nil.
func (l *Ledger) Find(id task.ID) *Entry { return l.tasks[id] }

// Output returns what followed from the calls since the last Output. The slices
// are the caller's.
func (l *Ledger) Output() Output {
	out := l.out
	l.out = Output{}
	return out
}

func (l *Ledger) loadLease(lease row.Lease) {
	if !lease.Live {
		l.counters[lease.ID] = lease
		return
	}
	e := &Entry{ID: lease.ID, Priority: lease.Priority, Due: lease.Due}
	e.have = form{kind: row.Tasks, beside: grantsOf(&lease)}
	if lease.Due != 0 {
		e.have.kind, e.have.due = row.Scheduled, lease.Due
	}
	e.setGrants(lease)
	l.insert(e)
	l.become(e, Leased)
	l.spilledRows = max(l.spilledRows-1, 0)
	l.leases.set(e, int64(lease.Duration))
}

func (l *Ledger) answer(a Answer) {
	if a.Call != nil {
		l.out.Answers = append(l.out.Answers, a)
	}
}

// insert puts an entry into memory.
func (l *Ledger) insert(e *Entry) {
	l.tasks[e.ID] = e
	l.counts.Memory++
}

// forget takes an entry out of memory, and remembers it while a read runs (L6).
func (l *Ledger) forget(e *Entry) {
	l.leases.remove(e)
	l.unqueue(e)
	if e.Task != nil && e.State == Leased {
		l.leased -= e.size
	}
	delete(l.tasks, e.ID)
	e.forgotten = true
	l.counts.Memory--
	l.count(e, -1)
	l.read.remember(e.ID)
}

func (l *Ledger) markDirty(e *Entry) {
	if !e.dirty {
		e.dirty = true
		l.dirty = append(l.dirty, e)
	}
}
