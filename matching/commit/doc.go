// Package commit owns the commit lanes of a node: the only callers of the
// store's Commit. Each lane has one goroutine and one commit in flight; what
// becomes dirty meanwhile leaves together in the next commit. There is no timer
// and no linger: a lone change is committed at once.
//
//	partition A ─Dirty─┐            ┌─Take──> mutation A ┐
//	partition B ─Dirty─┼─> dirty set┼─Take──> mutation B ┼─> store.Commit ─> Settle A, B, C
//	partition C ─Dirty─┘            └─Take──> mutation C ┘
//
// A partition belongs to one lane, by a hash of its routing key, so its
// mutations are committed one after the other. A lane asks a partition for its
// mutation as late as it can: what was added and completed since the last
// commit has cancelled out by then and costs nothing.
//
// # How a commit ends
//
//	Stored      Settle
//	NotStored   Settle; the partition stays dirty and the lane backs off
//	LostEpoch   Settle; the partition is lost and never taken from again
//	Unknown     the partitions with this outcome, and no others, are acquired
//	            again in one call, what the store has of their unresolved ids is
//	            read, and Resolve hands both over. Both steps are repeated until
//	            they work or the lanes stop
//
// While a lane backs off or resolves it commits nothing else: it is the same
// store that the others would need.
//
// # Invariants
//
//	C1  Between a Take that returned a mutation and the Settle or Resolve that
//	    answers it, Take of the same partition is not called.
//	C2  Every mutation taken is answered by exactly one Settle or Resolve.
//	C3  A Dirty that returns before Stop was called is followed by a Take, unless
//	    Stop's own bound ends first.
//
// # Locks
//
// Dirty takes the lane's lock for a few instructions and calls nothing under
// it, so it may be called under a partition's lock. Take, Settle, Unresolved and
// Resolve are called with no lock held.
//
// # Decisions
//
// One yield of the processor between waking and taking. It lets the goroutines
// that are ready to add more run first, costs nothing when there are none, and
// makes batches several times larger under load than taking at once. A timer
// would do the same for the price of latency. Two commits in flight a lane were
// tried and gained nothing on one disk.
package commit
