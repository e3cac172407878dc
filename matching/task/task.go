// Package task holds the values that everything else in the matching server
// speaks of: a task, its id, the grant that hands it to a worker, the token
// that carries a grant over the wire, and the typed errors of the service.
//
// The package is pure and imports nothing of the project but partition.
//
// # Words
//
// A grant is one hand-over of a task to a worker; it is named by the task's id,
// the delivery number and the lease epoch under which it was made. Deliveries
// count grants. Attempts count failures and lease expiries. A lease is the time
// a worker has for a grant, extended by heartbeats.
package task

import (
	"fmt"
	"strconv"
	"time"
)

// SeqBits is how many low bits of an [ID] hold the sequence number; the epoch
// stands above them.
const SeqBits = 40

// Epoch is the lease epoch of a partition: it grows by one each time a node
// takes the partition, and every write is conditional on it. 0 means none.
type Epoch uint64

// MaxEpoch is the highest epoch that fits an [ID].
const MaxEpoch = Epoch(1)<<(64-SeqBits) - 1

// ID names a task within its partition: epoch<<40 | sequence. Ids increase for
// the life of a partition and are never used twice. 0 is no id.
type ID uint64

// MakeID returns the id with the given parts. Sequences start at 1.
func MakeID(e Epoch, seq uint64) ID { return ID(uint64(e)<<SeqBits | seq) }

// Epoch returns the epoch under which the id was given out.
func (id ID) Epoch() Epoch { return Epoch(id >> SeqBits) }

// Seq returns the sequence number of the id within its epoch.
func (id ID) Seq() uint64 { return uint64(id) & (1<<SeqBits - 1) }

// String returns the id as a decimal number, the form of every interface.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// ParseID reads the form that [ID.String] writes.
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("task id %q is not a positive decimal number of 64 bits", s)
	}
	return ID(n), nil
}

// Priority orders tasks within a partition, 1 first.
type Priority uint8

// The range of priorities. Tasks without a priority get DefaultPriority.
const (
	MinPriority     Priority = 1
	DefaultPriority Priority = 3
	MaxPriority     Priority = 5
	Priorities               = int(MaxPriority)
)

// Level returns the zero-based index of p, for arrays with one element per priority.
func (p Priority) Level() int { return int(p) - 1 }

// Micros is a wall-clock time in microseconds since the Unix epoch. 0 is unset.
type Micros int64

// At converts a time; the zero time gives 0.
func At(t time.Time) Micros {
	if t.IsZero() {
		return 0
	}
	return Micros(t.UnixMicro())
}

// Time converts back, in UTC; 0 gives the zero time.
func (m Micros) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(m)).UTC()
}

// Add returns m + d, d cut to microseconds.
func (m Micros) Add(d time.Duration) Micros { return m + Micros(d/time.Microsecond) }

// Sub returns m - o.
func (m Micros) Sub(o Micros) time.Duration { return time.Duration(m-o) * time.Microsecond }

// Durability is the contract under which a task is accepted.
type Durability uint8

// Durable tasks are on disk before AddTask answers, or already finished.
// HandOff is the cheaper contract that a producer may ask for; a node is free
// to give the stronger one.
const (
	Durable Durability = iota
	HandOff
)

// RetryPolicy says how long a failed task rests before its next attempt:
// Initial * Factor^(attempts-1), at most Max, spread by +-Jitter. Zero fields
// take the node's defaults.
type RetryPolicy struct {
	Initial time.Duration
	Max     time.Duration
	Factor  float64
	Jitter  float64 // ratio, 0..1
}

// Task is a task with everything its producer said of it and what has happened
// to it since. Once added it is shared between goroutines: treat the exported
// fields, and what they point to, as read-only.
type Task struct {
	ID       ID
	Payload  []byte
	Headers  map[string]string
	Priority Priority

	FairnessKey    string
	FairnessWeight float32

	AddedAt   Micros
	NotBefore Micros // earliest hand-out; 0 = at once
	ExpiresAt Micros // last moment for a hand-out; 0 = never expires

	MaxAttempts   uint32        // 0 = the node's default
	Retry         RetryPolicy   // zero fields = the node's defaults
	LeaseDuration time.Duration // 0 = the node's default
	Durability    Durability
	RequestID     string

	Attempts    uint32 // failures and lease expiries so far
	Deliveries  uint32 // grants so far
	LastFailure string // what the last failure said, cut to a limit
}

// overhead is what a task costs in memory beyond its variable parts: the
// struct, its slot in maps and heaps, and the allocator's rounding.
const overhead = 400

// Size is about how many bytes the task takes in memory; limits count with it.
func (t *Task) Size() int {
	n := overhead + len(t.Payload) + len(t.FairnessKey) + len(t.RequestID) + len(t.LastFailure)
	for k, v := range t.Headers {
		n += len(k) + len(v) + 48
	}
	return n
}

// Grant names one hand-over of a task to a worker.
type Grant struct {
	ID       ID
	Delivery uint32 // 1 for the first hand-over
	Epoch    Epoch  // the partition's epoch when it was granted
}

// Holder names a run of a node that holds a partition.
type Holder struct {
	Node    string // stable name, on the ring
	RunID   string // new at each start
	Address string // HOST:PORT of its gRPC endpoint
}
