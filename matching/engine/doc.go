// Package engine holds the loaded partitions of a node: it loads and unloads
// them, wakes them when their time has come, and shares out what the node has
// among them. What a partition does once it is loaded is the business of queue.
//
//	server ──Queue(p)──> table ──load──> backlog.Open, queue.New
//	                       │
//	                       ├── loaded partitions ──Dirty──> commit lanes ──> store
//	                       │                     <──Tick─── wheel
//	                       └── unload: idle, forced, lost, shutdown
//
// # Loading
//
// A partition is loaded by the first call that needs it. Calls that may wait do
// so until their own deadline; the items of a batch are answered NOT_READY at
// once. A load that fails leaves nothing behind: the calls that waited get the
// error and the next one begins anew. After a start, partitions that may hold
// tasks are loaded without being asked for, a few at a time and so many a
// second, so that their delays, expiries and figures go on.
//
// # Unloading
//
// A partition that nobody used for five minutes is unloaded; so is one that an
// operator names or that another run of a node has taken. Calls that come while
// it closes wait for that and load it again, or get PARTITION_CLOSING. Once Stop
// began nothing is loaded any more.
//
// # Partition counts
//
// Each queue has read >= write >= 1 partitions by the settings. Writes to
// numbers at or above the write count and reads of numbers at or above the read
// count are refused with the counts in force, so that a caller with old counts
// learns the new ones. What was handed out may be settled wherever it came from.
// Lowering the counts strands nothing: a partition that the catalogue knows may
// always be read, and the read count that callers are told is raised to the
// highest partition of the queue that may still hold tasks. Once such a partition
// is drained it is unloaded within seconds, which ends the polls that wait there:
// their workers learn the counts and wait where tasks are added.
//
// # Goroutines
//
// One for the wheel, one per commit lane, one that looks for idle partitions, one
// that has partitions loaded after a start, one for each partition that is being
// loaded or closed. A loaded partition that rests has none.
//
// # Lock order
//
//	wheel.mu, a lane's mu, table.mu, readAhead.mu, Engine.mu
//
// These are leaves: nothing is called while one of them is held, neither a
// partition nor the store. A partition sets its timer, says that it is dirty and
// reports that it is lost without its own lock; Dirty, Wheel.At and the report
// would be legal under it too.
package engine
