package ledger

import (
	"container/heap"
	"time"

	"github.com/taskring/taskring/matching/task"
)

// timerKind names one of the ledger's ordered sets of entries.
type timerKind int

const (
	leaseTimer  timerKind = iota // lease deadlines, in nanoseconds since the ledger's start
	dueTimer                     // due times of delayed tasks, in microseconds of wall time
	expiryTimer                  // expiry of tasks that are ready or delayed, likewise
	timerKinds
)

// timers is a heap of entries by key, then by id. An entry knows its place, so
// that it can be taken out from the middle.
type timers struct {
	kind  timerKind
	items []*Entry
}

// Len, Less, Swap, Push and Pop are for container/heap.
func (t *timers) Len() int { return len(t.items) }

func (t *timers) Less(i, j int) bool {
	a, b := t.items[i], t.items[j]
	return a.key[t.kind] < b.key[t.kind] || (a.key[t.kind] == b.key[t.kind] && a.ID < b.ID)
}

func (t *timers) Swap(i, j int) {
	t.items[i], t.items[j] = t.items[j], t.items[i]
	t.items[i].pos[t.kind], t.items[j].pos[t.kind] = int32(i)+1, int32(j)+1
}

func (t *timers) Push(x any) {
	e := x.(*Entry) //nolint:forcetypeassert // only set pushes, and only entries
	t.items = append(t.items, e)
	e.pos[t.kind] = int32(len(t.items))
}

func (t *timers) Pop() any {
	last := len(t.items) - 1
	e := t.items[last]
	t.items[last] = nil
	t.items = t.items[:last]
	e.pos[t.kind] = 0
	return e
}

// set gives the entry a key, putting it in when it is not there yet.
func (t *timers) set(e *Entry, key int64) {
	e.key[t.kind] = key
	if p := e.pos[t.kind]; p > 0 {
		heap.Fix(t, int(p)-1)
		return
	}
	heap.Push(t, e)
}

// remove takes the entry out when it is in.
func (t *timers) remove(e *Entry) {
	if p := e.pos[t.kind]; p > 0 {
		heap.Remove(t, int(p)-1)
	}
}

// popUntil takes out and returns the first entry with a key of at most limit, or nil.
func (t *timers) popUntil(limit int64) *Entry {
	if len(t.items) == 0 || t.items[0].key[t.kind] > limit {
		return nil
	}
	return heap.Pop(t).(*Entry) //nolint:forcetypeassert // only entries are in it
}

// mono is now on the ledger's monotonic clock, in nanoseconds.
func (l *Ledger) mono(now time.Time) int64 { return int64(now.Sub(l.base)) }

// wall is now as wall time that never runs backwards.
func (l *Ledger) wall(now time.Time) task.Micros {
	l.lastWall = max(l.lastWall, task.At(now))
	return l.lastWall
}

// LeaseLeft is how long the lease of an entry still runs, 0 when it has none.
func (l *Ledger) LeaseLeft(e *Entry, now time.Time) time.Duration {
	if e.pos[leaseTimer] == 0 {
		return 0
	}
	return max(time.Duration(e.key[leaseTimer]-l.mono(now)), 0)
}

// Tick does what has become due by now: delayed tasks become ready, leases
// expire, tasks expire. Calling it too often or too late does no harm.
func (l *Ledger) Tick(now time.Time) {
	wall, mono := l.wall(now), l.mono(now)
	for e := l.due.popUntil(int64(wall)); e != nil; e = l.due.popUntil(int64(wall)) {
		l.uncountDelayed(e)
		l.makeReady(e)
	}
	for e := l.leases.popUntil(mono); e != nil; e = l.leases.popUntil(mono) {
		l.expireLease(e)
	}
	for e := l.expiries.popUntil(int64(wall)); e != nil; e = l.expiries.popUntil(int64(wall)) {
		l.expire(e)
	}
	if l.retryReadAt != 0 && mono >= l.retryReadAt {
		l.retryReadAt = 0
	}
}

// NextTick returns when [Ledger.Tick] should be called next, false for never.
func (l *Ledger) NextTick(now time.Time) (time.Time, bool) {
	const never = time.Duration(1<<63 - 1)
	wait := never
	wall, mono := l.wall(now), l.mono(now)
	if len(l.leases.items) > 0 {
		wait = min(wait, time.Duration(l.leases.items[0].key[leaseTimer]-mono))
	}
	if len(l.due.items) > 0 {
		wait = min(wait, task.Micros(l.due.items[0].key[dueTimer]).Sub(wall))
	}
	if len(l.expiries.items) > 0 {
		wait = min(wait, task.Micros(l.expiries.items[0].key[expiryTimer]).Sub(wall))
	}
	if l.retryReadAt != 0 {
		wait = min(wait, time.Duration(l.retryReadAt-mono))
	}
	if wait == never {
		return time.Time{}, false
	}
	return now.Add(max(wait, 0)), true
}
