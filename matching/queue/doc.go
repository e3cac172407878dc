// Package queue is one loaded partition: tasks come in, polls come in, tasks go
// to polls, and what must not be lost goes to the store.
//
// It is two things. [Core] is the whole partition as a pure state machine: the
// ledger (which tasks, in which state, what of them is stored) and the matcher
// (which task meets which poll), told of events with their time. [Queue] is the
// monitor around it: one lock, and what happens outside of it.
//
//	 AddTask   PollTask   CompleteTask ...      timer wheel
//	    |          |           |                    |
//	    v          v           v                    v
//	+-Queue (lock)----------------------------------------+
//	|   Core:   matcher  <---offer/grant--->  ledger      |
//	+-----------------------------------------------------+
//	    |          |               ^                ^
//	    v          v          Take | Settle         | rows
//	 answers    grants        commit lane        reader
//
// After each event the core matches what can be matched, and the queue carries
// out what followed: it answers calls, wakes polls, tells the commit lane that
// there is something to write, starts the next read, and sets the timer. The
// lane calls back: it takes the mutation when it is free to commit it, so that
// whatever accumulated, or cancelled itself out, goes in one.
//
// # Invariants
//
//	Q1  No callback runs under the lock but the look at the settings. Lock order:
//	    a queue's lock is the last one taken; under it no other is asked for.
//	Q2  A loaded idle partition has no goroutine, no timer of its own and makes
//	    no call. Goroutines run only while a read is out.
//	Q3  A poll ends exactly once: with grants, or empty with a reason. Grants
//	    that cannot be handed to their caller are released at once.
//	Q4  After an event no task waits beside a poll that would take it, unless
//	    the limit on leases is reached.
//
// # Decisions
//
// A monitor, not a goroutine that owns the state: the commit lane must pull the
// mutation at the moment it can commit it, and every call would pay two
// hand-overs to the owner and back. The core stays as testable either way.
package queue
