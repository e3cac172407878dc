// Package ledger keeps the books of one partition: which tasks it knows, where
// each stands in its life, and what of that the store has.
//
// The ledger is pure. It is told what happened and when (Add, Grant, Complete,
// Settle, Tick ...) and says what follows: answers to callers, tasks to offer to
// workers, a mutation for the store, the next read it wants. It starts nothing,
// reads no clock and is not safe for concurrent use; matching/queue puts a lock
// around it.
//
// # An entry and its two sides
//
// Every task in memory is an [Entry]. An entry has a state, which is what the
// partition wants to be true, and a form, which is what the store holds of it.
// Nothing is ever queued for writing: an entry whose state no longer fits its
// form is marked dirty, and [Ledger.Take] writes the difference. So what happened
// and un-happened between two commits costs nothing: a task that is added,
// granted and completed before the next Take is never written at all.
//
//	          state (wanted)                         form (stored)
//	          -----------------                      -------------
//	Add ----> Ready ----Grant---> Leased     Take    none
//	            ^  \                |  |    ======>  task row (grants folded in)
//	     Release|   expired         |  |    Settle   task row + lease row
//	     expiry |    \              |  |    <======  scheduled row (+ lease row)
//	            |     v    Complete |  |Fail         dead row
//	            |   Finished <------+  |
//	            +--- due --- Delayed <-+--> Dying (no attempts left)
//
// # Invariants
//
//	L1  At most one mutation of the partition is with the store. What changes
//	    meanwhile waits for the next one.
//	L2  An answer that promises durability is given when a commit that
//	    covers it was stored, or at once when nothing of the task was ever handed
//	    to the store and nothing needs to be.
//	L3  Of each priority, every task row with an id at or below the level's read
//	    mark is in memory or gone. New tasks join memory only while the mark
//	    covers everything; once some task was left to the store alone (spilled),
//	    later ones are too, until the reader has caught up. So order is kept.
//	L4  Of scheduled rows the same holds with (due, id) in place of the id.
//	L5  The reader never passes an id whose commit is not settled.
//	L6  While a read is running nothing leaves memory unnoticed: finished tasks
//	    are remembered, evictions wait. A stale row cannot come back to life.
//	L7  Range deletes cover only ids at or below the read mark that are not in
//	    memory: runs whose rows are gone.
//
// # Time
//
// Leases run on the monotonic reading of the times that are passed in; due and
// expiry times are wall time, which never runs backwards here.
package ledger
