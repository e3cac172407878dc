package bench

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// numberSize is how many bytes of a payload hold the number of its task.
const numberSize = 8

// place is where a task lives.
type place struct {
	partition int32
	id        uint64
}

// record is what happened to one task. Times are nanoseconds since the start of
// the ledger; 0 is not yet.
type record struct {
	called   atomic.Int64 // the add was called
	answered atomic.Int64 // the add was answered
	received atomic.Int64 // a handler got the task, the first time

	acknowledged atomic.Pointer[place] // by the add
	granted      atomic.Pointer[place] // by the first receipt
	receipts     atomic.Int32
}

// ledger notes what happens to each task of a run, by number. Its methods may
// be called concurrently.
type ledger struct {
	begun    time.Time
	filler   []byte // what a payload holds behind its number
	records  []record
	answers  atomic.Int64  // adds that were acknowledged
	distinct atomic.Int64  // tasks received at least once
	all      chan struct{} // closed when every task was received
	once     sync.Once
}

func newLedger(tasks, payload int) *ledger {
	l := &ledger{
		begun: time.Now(), filler: make([]byte, payload-numberSize), records: make([]record, tasks), all: make(chan struct{}),
	}
	// Bytes that do not compress, so that no layer below gets off lightly.
	chance := rand.NewChaCha8([32]byte{})
	_, _ = chance.Read(l.filler) // never fails
	return l
}

// now is the time on the ledger's clock, never 0.
func (l *ledger) now() int64 { return max(1, int64(time.Since(l.begun))) }

// payload returns the payload of a task.
func (l *ledger) payload(number int) []byte {
	return append(binary.BigEndian.AppendUint64(make([]byte, 0, numberSize+len(l.filler)), uint64(number)), l.filler...)
}

func (l *ledger) call(number int) { l.records[number].called.Store(l.now()) }

func (l *ledger) answer(number int, at place) {
	r := &l.records[number]
	r.acknowledged.Store(&at)
	r.answered.Store(l.now())
	l.answers.Add(1)
}

// receive notes a receipt; it reports false for a payload of no task of the run.
func (l *ledger) receive(payload []byte, at place) bool {
	if len(payload) < numberSize {
		return false
	}
	number := binary.BigEndian.Uint64(payload)
	if number >= uint64(len(l.records)) {
		return false
	}
	r := &l.records[number]
	if r.receipts.Add(1) > 1 {
		return true
	}
	r.granted.Store(&at)
	r.received.Store(l.now())
	if l.distinct.Add(1) == int64(len(l.records)) {
		l.once.Do(func() { close(l.all) })
	}
	return true
}

// verdict is what the check of every id came to.
type verdict struct {
	received, lost, dups int
	swapped              int // received under another id than acknowledged
}

// check compares receipts with acknowledgements.
func (l *ledger) check() verdict {
	var v verdict
	for i := range l.records {
		r := &l.records[i]
		receipts := int(r.receipts.Load())
		if receipts > 0 {
			v.received++
			v.dups += receipts - 1
		}
		acknowledged, granted := r.acknowledged.Load(), r.granted.Load()
		switch {
		case acknowledged != nil && granted == nil:
			v.lost++
		case acknowledged != nil && *acknowledged != *granted:
			v.swapped++
		}
	}
	return v
}
