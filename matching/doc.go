// Package matching is a matching node: it takes tasks from producers, hands them
// to workers, and keeps what no worker has finished. This page is the map of the
// server; a node itself is [Node], made from a [Config].
//
// # Words
//
//	task queue   namespace, name and task type; cut into partitions from 0, the root
//	partition    one independently owned slice of a queue; everything below is per partition
//	backlog      stored tasks of a partition that are not finished
//	grant        one hand-over of a task to a worker: (id, delivery, epoch)
//	lease        the time a worker has for a grant; heartbeats extend it
//	epoch        number in the partition's row of the store; every write depends on it
//	poll         a worker's long request for tasks
//	sync match   a task that goes to a waiting poll without resting in the backlog
//	dirty        something of a partition is decided and not yet stored
//
// # The picture
//
// Requests go down, one package a step; each knows only those below it.
//
//	 AddTask, PollTask, CompleteTask ...                   /livez /readyz /metrics
//	            │                                                   │
//	┌ matching ─┼───────────────────────────────────────────────────┼── Node ┐
//	│           v                                                            │
//	│   server      validate, call, answer; end polls; sizes and statuses    │
//	│           │                                                            │
//	│   engine      which partitions are loaded; load, unload; timer wheel   │
//	│           │                                                            │
//	│   queue       one loaded partition: a lock around ...                  │
//	│    │  │  └──> match    which waiting task meets which waiting poll     │
//	│    │  └─────> ledger   which tasks there are, in which state, and what │
//	│    │                   of that the store has                           │
//	│    │                                                                   │
//	│    ├─ reads ──> backlog ──────────────────┐                            │
//	│    └─ dirty ──> commit   lanes that take  │                            │
//	│                    │     mutations of     │                            │
//	│                    │     many partitions  │                            │
//	│                    └──────────┬───────────┘                            │
//	│               v                                                        │
//	│   store       acquire, commit, scan: memory for tests, pebble on disk  │
//	└────────────────────────────────────────────────────────────────────────┘
//
// Beside them: wire turns messages into values and errors into statuses and
// back; task, row and partition are the values that all of them speak of.
//
// # The life of a task, in calls
//
//	AddTask       server checks it, queue gives it an id, ledger books it as ready
//	              and dirty, match gives it to a poll if one waits
//	(commit)      the partition's lane, free again, takes the mutation: the task,
//	              with its grant folded in when it has one by now
//	-> OK         the lane settles the mutation, ledger answers the add
//	PollTask      match gives the oldest task of the first priority to the poll;
//	              the grant is answered at once, its lease is booked as dirty
//	CompleteTask  ledger books the task as finished; when nothing of it was given to
//	              the store yet, nothing ever will be, and both calls are answered;
//	              else the next mutation deletes its rows, and then it is answered
//
// Nothing is ever queued for writing. A lane asks a partition what it wants to be
// true and the store does not have yet, as late as it can. So everything that
// happens while a commit runs leaves in the next one, and what cancelled itself
// out costs nothing. There is no timer in this path.
//
// # Invariants
//
//	N1  Once an add is answered with OK, the task is in the store, or finished.
//	N2  Once a completion is answered with OK, the task is never handed out again.
//	N3  Every write of a partition carries its epoch. After another run has taken
//	    the partition no write of the earlier one can take effect.
//	N4  At most one mutation of a partition is with the store at any time.
//	N5  A partition is loaded at most once in a process, and nothing is loaded once
//	    the node began to stop.
//	N6  No task waits beside a poll that would take it.
//	N7  A grant whose reply cannot be sent is released at once.
//	N8  Every queue in memory has a bound, and a refusal names it.
//
// The packages hold them by finer ones of their own: ledger L1-L7, match M1-M3,
// queue Q1-Q4, commit C1-C3, store S1-S7, row R1-R4.
//
// # Goroutines
//
// Those of gRPC and HTTP; one per commit lane; one for the timer wheel; one that
// looks for idle partitions; one that has partitions loaded after a start; one
// for each partition that is being loaded, or reads its backlog. A loaded
// partition that rests has none.
//
// # Starting and stopping
//
// New takes ports and data directory. Start begins to serve and loads, in the
// background, the partitions that may hold tasks. Stop: not ready; polls end with
// SHUTDOWN; running calls are answered; partitions write what is decided and are
// released; lanes end; the store is closed. A node that is killed instead loses
// nothing that it answered: the next start takes each partition with a new epoch,
// and leases run their whole duration again.
//
// # Settings
//
// [Config] is what cannot change while the node runs. Everything else is a dynamic
// setting: declared in the file settings.go of the package that reads it, listed
// by [Declared], and read at each use from the snapshot in force. Pure packages
// get plain values. A node reads its settings from the file that DynamicConfig
// names and follows it; who embeds a node may publish to [Config.Settings] instead.
//
// # Where to start reading
//
// ledger/doc.go and ledger.Entry for what happens to a task; queue/core.go for
// how tasks and polls meet; commit/lane.go for how it reaches the disk;
// server/add.go and server/poll.go for how it is asked for. Run the scripts in
// queue/testdata to see the durable path step by step.
package matching
