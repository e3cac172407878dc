package queue

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/match"
	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
)

// Granted is a task handed to a worker.
type Granted struct {
	Grant    task.Grant
	Task     *task.Task
	Attempt  uint32 // 1 for the first
	Duration time.Duration
	Fresh    bool // straight from its add, not from the backlog
}

// Core is one partition as a pure state machine. It is not safe for concurrent
// use. After every call, [Core.Settle] tells what followed from it.
type Core struct {
	ledger  *ledger.Ledger
	matcher match.Matcher
	polls   map[string]*Poll // those with an id
	waiting map[*Poll]struct{}
	pollSeq uint64
	ended   []*Poll
	touched []*Poll
}

// NewCore returns the core of a partition that was just acquired.
func NewCore(c ledger.Config, now time.Time) *Core {
	return &Core{
		ledger: ledger.New(c, now),
		polls:  make(map[string]*Poll), waiting: make(map[*Poll]struct{}),
	}
}

// Effects is what followed from calls to a core.
type Effects struct {
	Answers []ledger.Answer
	Ended   []*Poll // polls that ended: give each its result
}

// Poll is a worker that waits for tasks. The result is set when it ended.
type Poll struct {
	ID            string // "" = cannot be cancelled by id
	Identity      string
	LeaseDuration time.Duration // 0 = what the task says
	MaxBytes      int           // of payloads and headers, the first task excepted; 0 = no bound
	Result        PollResult

	bytes  int // of what was granted
	waiter match.Poll
	seq    uint64 // in the order of Wait
	done   chan struct{}
}

// EmptyReason tells why a poll ended without a task.
type EmptyReason uint8

// Why polls end empty.
const (
	NotEmpty       EmptyReason = iota
	Timeout                    // no task came
	Moved                      // another node has the partition now
	Shutdown                   // the node is stopping, or unloads the partition
	WorkerShutdown             // the worker said that it stops
	Cancelled                  // by CancelPoll, or the caller left
)

// String returns the reason in words.
func (r EmptyReason) String() string {
	return [...]string{"not empty", "timeout", "moved", "shutdown", "worker shutdown", "cancelled"}[min(r, Cancelled)]
}

// PollResult is how a poll ended. Grants is empty unless Empty is NotEmpty.
type PollResult struct {
	Grants []Granted
	Empty  EmptyReason
	Owner  *task.Ownership // Moved: to whom, when known
	Ready  int64           // tasks left in memory that could be handed out now
}

// Add adds tasks; the answers find their callers by tickets with the given call
// and the index of the task. The tasks are the core's from here on. An error
// refuses all of them, and no answer follows.
func (c *Core) Add(tasks []*task.Task, call any, now time.Time) error {
	bytes := 0
	for _, t := range tasks {
		bytes += t.Size()
	}
	if err := c.ledger.Admit(len(tasks), bytes); err != nil {
		return err
	}
	for i, t := range tasks {
		c.ledger.Add(t, now, ledger.Ticket{Call: call, Index: i})
	}
	return nil
}

// Complete settles grants as done.
func (c *Core) Complete(grants []task.Grant, call any) {
	for i, g := range grants {
		c.ledger.Complete(g, ledger.Ticket{Call: call, Index: i})
	}
}

// Fail settles grants as failed.
func (c *Core) Fail(grants []task.Grant, f ledger.Failure, call any, now time.Time) {
	for i, g := range grants {
		c.ledger.Fail(g, f, now, ledger.Ticket{Call: call, Index: i})
	}
}

// Release gives grants back.
func (c *Core) Release(grants []task.Grant, call any, now time.Time) {
	for i, g := range grants {
		c.ledger.Release(g, now, ledger.Ticket{Call: call, Index: i})
	}
}

// Heartbeat runs the leases of grants anew.
func (c *Core) Heartbeat(grants []task.Grant, call any, now time.Time) {
	for i, g := range grants {
		c.ledger.Heartbeat(g, now, ledger.Ticket{Call: call, Index: i})
	}
}

// Wait lets a poll wait for up to want tasks. A poll with the id of one that
// waits already takes its place; the earlier one ends as Cancelled.
func (c *Core) Wait(p *Poll, want int, minPriority task.Priority) {
	if p.ID != "" {
		if earlier := c.polls[p.ID]; earlier != nil {
			c.End(earlier, PollResult{Empty: Cancelled})
		}
		c.polls[p.ID] = p
	}
	p.waiter = match.Poll{Want: max(want, 1), MinPriority: minPriority, Value: p}
	c.pollSeq++
	p.seq = c.pollSeq
	c.waiting[p] = struct{}{}
	c.matcher.Wait(&p.waiter)
}

// Find returns the waiting poll with the id, or nil.
func (c *Core) Find(pollID string) *Poll { return c.polls[pollID] }

// End ends a waiting poll with the result and reports whether it was waiting.
func (c *Core) End(p *Poll, r PollResult) bool {
	if _, ok := c.waiting[p]; !ok {
		return false
	}
	c.matcher.Leave(&p.waiter)
	delete(c.waiting, p)
	if p.ID != "" && c.polls[p.ID] == p {
		delete(c.polls, p.ID)
	}
	p.Result = r
	c.ended = append(c.ended, p)
	return true
}

// EndAll ends every waiting poll with the result.
func (c *Core) EndAll(r PollResult) {
	byAge := slices.SortedFunc(maps.Keys(c.waiting), func(a, b *Poll) int { return cmp.Compare(a.seq, b.seq) })
	for _, p := range byAge {
		c.End(p, r)
	}
}

// Settle matches what can be matched and returns what followed from the calls
// since the last Settle.
func (c *Core) Settle(now time.Time) Effects {
	var effects Effects
	for {
		out := c.ledger.Output()
		if effects.Answers == nil {
			effects.Answers = out.Answers // mostly all there are: no copy
		} else {
			effects.Answers = append(effects.Answers, out.Answers...)
		}
		c.follow(out)
		if !c.matchAll(now) {
			break
		}
	}
	effects.Ended, c.ended = c.ended, nil
	return effects
}

// Tick does what has become due.
func (c *Core) Tick(now time.Time) { c.ledger.Tick(now) }

// NextTick returns when Tick should be called next, false for never.
func (c *Core) NextTick(now time.Time) (time.Time, bool) { return c.ledger.NextTick(now) }

// WantsTake reports whether Take may have something to write.
func (c *Core) WantsTake() bool { return c.ledger.WantsTake() }

// Take returns the mutation to commit, or nil; see [ledger.Ledger.Take].
func (c *Core) Take(now time.Time) *row.Mutation { return c.ledger.Take(now) }

// Committed tells the outcome of the mutation taken last, except
// [store.Unknown], after which [Core.Resolve] follows.
func (c *Core) Committed(o store.Outcome) {
	switch o.Result {
	case store.Stored:
		c.ledger.Stored()
	case store.LostEpoch:
		c.ledger.LostEpoch(o.Owner)
		c.EndAll(PollResult{Empty: Moved, Owner: &o.Owner})
	default:
		c.ledger.NotStored(o.Err)
	}
}

// Unresolved returns the ids to read before [Core.Resolve].
func (c *Core) Unresolved() []task.ID { return c.ledger.Unresolved() }

// Resolve ends an unknown outcome: the partition was acquired again, and the
// store has these records of the unresolved ids. An error in acquired means
// that the partition is lost.
func (c *Core) Resolve(acquired store.Acquired, records []row.Record) {
	if acquired.Err != nil {
		c.Lose(acquired.Err.Error())
		return
	}
	c.ledger.Resolve(acquired.Epoch, acquired.Meta, records)
	if c.ledger.Lost() {
		c.EndAll(PollResult{Empty: Moved})
	}
}

// Lose gives the partition up as it is; polls end as Moved.
func (c *Core) Lose(why string) {
	c.ledger.Lose(task.Ownership{}, why)
	c.EndAll(PollResult{Empty: Moved})
}

// Lost reports whether the partition was lost to another holder.
func (c *Core) Lost() bool { return c.ledger.Lost() }

// NextRead returns the read that the ledger wants now.
func (c *Core) NextRead() (ledger.Read, bool) { return c.ledger.NextRead() }

// ReadResult is how a read of the core ended.
type ReadResult struct {
	Read    ledger.Read  // what was asked for
	Page    row.Page     // the rows, when it was a scan
	Records []row.Record // one per id, in order, when it was a lookup
	Err     error        // why there is neither: the read failed, and is tried again later
}

// ReadDone brings the result of the running read.
func (c *Core) ReadDone(r ReadResult, now time.Time) {
	switch {
	case r.Err != nil:
		c.ledger.ReadFailed(r.Err, now)
	case len(r.Read.IDs) > 0:
		c.ledger.LookedUp(r.Records, now)
	default:
		c.ledger.Scanned(r.Page, now)
	}
}

// Close begins the end: polls end with the result, adds are refused, and once
// everything is written the partition is released in the store.
func (c *Core) Close(r PollResult) {
	c.EndAll(r)
	c.ledger.Close()
}

// Closed reports whether the partition was released in the store.
func (c *Core) Closed() bool { return c.ledger.Closed() }

// Ledger gives read access to the books.
func (c *Core) Ledger() *ledger.Ledger { return c.ledger }

// follow brings the matcher up to date with the ledger.
func (c *Core) follow(out ledger.Output) {
	for _, e := range out.Offer {
		t := &match.Task{ID: e.ID, Priority: e.Priority, Since: e.Since(), Value: e}
		if old, ok := e.Slot.(*match.Task); ok {
			c.matcher.Withdraw(old)
		}
		e.Slot = t
		c.matcher.Offer(t)
	}
	for _, e := range out.Withdraw {
		if t, ok := e.Slot.(*match.Task); ok && !e.Offered() {
			c.matcher.Withdraw(t)
		}
	}
}

// matchAll grants tasks to polls until nothing more fits, and ends the polls
// that got any. It reports whether the ledger has more to say.
func (c *Core) matchAll(now time.Time) bool {
	progress := false
	for c.ledger.CanGrant() {
		t, w, ok := c.matcher.Next()
		if !ok {
			break
		}
		e, p := t.Value.(*ledger.Entry), w.Value.(*Poll) //nolint:forcetypeassert // only follow and Wait make them
		if !p.takes(e.Task) {
			c.matcher.Leave(w) // it goes with what it has
			c.matcher.Offer(t)
			continue
		}
		progress = true
		c.grant(e, w, now)
	}
	ready := int64(c.matcher.Tasks())
	for _, p := range c.touched {
		r := p.Result
		r.Ready = ready
		c.End(p, r)
	}
	clear(c.touched)
	c.touched = c.touched[:0]
	return progress
}

// takes reports whether the task fits into what the poll may bring home. The
// first one always does.
func (p *Poll) takes(t *task.Task) bool {
	return p.MaxBytes == 0 || len(p.Result.Grants) == 0 || p.bytes+bytesOf(t) <= p.MaxBytes
}

// bytesOf is how large a task is on the wire, but for its small fields.
func bytesOf(t *task.Task) int {
	n := len(t.Payload)
	for k, v := range t.Headers {
		n += len(k) + len(v)
	}
	return n
}

// grant hands a task to a poll, whose place is given back when the ledger says no.
func (c *Core) grant(e *ledger.Entry, w *match.Poll, now time.Time) {
	p := w.Value.(*Poll) //nolint:forcetypeassert // only Wait makes pollers
	g, ok := c.ledger.Grant(e, p.Identity, p.LeaseDuration, now)
	if !ok {
		c.matcher.Return(w)
		return
	}
	if len(p.Result.Grants) == 0 {
		c.touched = append(c.touched, p)
	}
	p.bytes += bytesOf(e.Task)
	p.Result.Grants = append(p.Result.Grants, Granted{
		Grant: g, Task: e.Task, Attempt: e.Attempts + 1, Duration: e.Duration, Fresh: e.Fresh(),
	})
}
