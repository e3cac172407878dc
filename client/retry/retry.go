// Package retry is the table that decides what a client does with an error:
// [Decide] takes the error, the kind of the call and what was tried so far, and
// returns whether to stop, and if not, where to go next and after what wait.
//
//	reason                        next
//	INVALID, NOT_FOUND, INTERNAL,
//	UNIMPLEMENTED                 stop
//	NOT_OWNER                     re-route: the first two hints at once, then 50 ms doubling
//	STALE_PARTITION_COUNTS        re-count, once; then stop
//	PARTITION_CLOSING, NOT_READY  same partition, after 20-100 ms
//	STORE_UNAVAILABLE             another partition, back-off
//	OUTCOME_UNKNOWN, broken       same partition, back-off, if the call may be repeated; else stop
//	not sent                      another partition, back-off
//	QUOTA                         an add another partition, others the same, after retry_after
//	LEASE_LOST, CANCELLED         stop
//	PAUSED, DRAINING,
//	DISK_WATERMARK                stop
//
// "Not sent" is a call that surely never left this process, because its node
// could not be reached. It is told apart from a broken connection, after which
// the node may have acted.
//
// Whatever the reason, a server that pushes back is obeyed: nobody comes earlier
// than it asked for, or at all.
//
// Back-offs double from 20 ms to 1 s, those of polls from 50 ms to 5 s, and are
// drawn from the upper half of their span. A [Budget] bounds all that go to a node
// which failed, see [Budgeted]. The package is pure: it neither waits nor knows the caller's deadline. A
// wait that would end past it is not worth beginning; the caller then answers
// with the error at hand.
package retry

import (
	"time"

	"github.com/taskring/taskring/matching/task"
)

// Kind tells what repeating a call may do.
type Kind uint8

// The kinds of calls.
const (
	// Once: a repetition may do harm, as an add without a request id does a
	// second task. Not repeated after an unknown outcome.
	Once Kind = iota
	// Add is Once, for an add: after a refusal for want of quota another
	// partition may have room.
	Add
	// Repeatable: a repetition finds what the first try did. Adds with a
	// request id, completions, heartbeats, everything that only reads.
	Repeatable
	// Poll is Repeatable, for a poll: nobody waits for it alone, so it takes
	// longer breaks.
	Poll
)

// Failure is what is known of a failed try.
type Failure struct {
	Reason task.Reason
	// NotSent: the call never left this process; Reason has no meaning.
	NotSent bool
	// RetryAfter is the server's advice when to come again; 0: none.
	RetryAfter time.Duration
	// NoRetry is the server's wish that nobody does.
	NoRetry bool
}

// Tries is what became of a call so far. The zero value belongs to a call that
// was tried for the first time. [Decide] counts in it.
type Tries struct {
	// Failed counts back-offs for tries that failed for the store, the network,
	// a quota or an unknown outcome.
	Failed int
	// Waited counts waits for a partition that was loading or moving.
	Waited int
	// Rerouted counts NOT_OWNER answers.
	Rerouted int
	// Recounted counts STALE_PARTITION_COUNTS answers.
	Recounted int
}

// MaxFailed is after how many back-offs a call gives up. The waits before that
// add up to about 4 seconds. Waits for a partition that loads, and for a newer
// view after NOT_OWNER, are bounded by the caller's deadline alone: they end by
// themselves.
const MaxFailed = 8

// Action is what to do next.
type Action uint8

// The actions.
const (
	// Stop: answer with the error.
	Stop Action = iota
	// Same: try the same partition again.
	Same
	// Reroute: the same partition, at the node the answer named, else by a new
	// look at the ring.
	Reroute
	// Recount: pick anew by the counts that came along.
	Recount
	// Other: another partition if the caller left the choice, else the same.
	Other
)

// String returns the action in lower case, for metrics and logs.
func (a Action) String() string {
	switch a {
	case Stop:
		return "stop"
	case Same:
		return "same"
	case Reroute:
		return "reroute"
	case Recount:
		return "recount"
	case Other:
		return "other"
	default:
		return "unknown"
	}
}

// Decision is an action and the wait before it.
type Decision struct {
	Action Action
	After  time.Duration
}

// Decide answers a failure of a call of the given kind and counts it in tries.
// random returns a number in [0, 1); it spreads the waits.
func Decide(kind Kind, f Failure, tries *Tries, random func() float64) Decision {
	if f.NoRetry {
		return Decision{}
	}
	d := decide(kind, f, tries, random)
	if d.Action != Stop && f.RetryAfter > 0 {
		// Spread upwards only: nobody may come earlier than was asked for.
		d.After = max(d.After, f.RetryAfter+spread(f.RetryAfter/5, random))
	}
	return d
}

// Budgeted reports whether a retry after such a failure counts against the
// budget. Those that never reached a node do it no harm; NOT_OWNER and
// STALE_PARTITION_COUNTS lead elsewhere; a partition that loads ends its wait by
// itself.
func Budgeted(f Failure) bool {
	if f.NotSent {
		return false
	}
	switch f.Reason {
	case task.StoreUnavailable, task.OutcomeUnknown, task.Quota:
		return true
	default:
		return false
	}
}

func decide(kind Kind, f Failure, tries *Tries, random func() float64) Decision {
	if f.NotSent {
		return backOff(kind, Other, tries, random)
	}
	switch f.Reason {
	case task.NotOwner:
		tries.Rerouted++
		return Decision{Reroute, afterReroute(tries.Rerouted, random)}
	case task.StaleCounts:
		tries.Recounted++
		if tries.Recounted > 1 {
			return Decision{}
		}
		return Decision{Action: Recount}
	case task.PartitionClosing, task.NotReady:
		tries.Waited++
		return Decision{Same, 20*time.Millisecond + spread(80*time.Millisecond, random)}
	case task.StoreUnavailable:
		return backOff(kind, Other, tries, random)
	case task.OutcomeUnknown:
		if kind != Repeatable && kind != Poll {
			return Decision{}
		}
		return backOff(kind, Same, tries, random)
	case task.Quota:
		next := Same
		if kind == Add {
			next = Other
		}
		return backOff(kind, next, tries, random)
	default:
		// INVALID, NOT_FOUND, UNIMPLEMENTED, INTERNAL, LEASE_LOST, CANCELLED,
		// PAUSED, DRAINING, DISK_WATERMARK.
		return Decision{}
	}
}

// afterReroute: following a hint is free; two nodes that point at each other
// wait for a newer view.
func afterReroute(times int, random func() float64) time.Duration {
	if times <= 2 {
		return 0
	}
	return doubling(50*time.Millisecond, 2*time.Second, times-3, random)
}

func backOff(kind Kind, next Action, tries *Tries, random func() float64) Decision {
	tries.Failed++
	switch {
	case tries.Failed > MaxFailed:
		return Decision{}
	case kind == Poll:
		return Decision{next, doubling(50*time.Millisecond, 5*time.Second, tries.Failed-1, random)}
	default:
		return Decision{next, BackOff(tries.Failed, random)}
	}
}

// BackOff returns the wait before try number n+1, n counting from 1: 20 ms,
// doubled up to 1 s, of which the lower half is sure and the upper at random.
func BackOff(n int, random func() float64) time.Duration {
	return doubling(20*time.Millisecond, time.Second, n-1, random)
}

func doubling(first, most time.Duration, doublings int, random func() float64) time.Duration {
	d := most
	if doublings < 20 { // far from overflow, beyond any limit
		d = min(first<<max(doublings, 0), most)
	}
	return d/2 + spread(d/2, random)
}

func spread(d time.Duration, random func() float64) time.Duration {
	return time.Duration(random() * float64(d))
}
