// Package server serves the matching service: it reads requests, calls the
// engine and answers. It decides nothing about tasks.
//
//	connection ─> Server: sizes, call metrics, errors to statuses
//	                │
//	                v
//	              Handler ── partition set ───> engine ─> queue
//	                │  ▲
//	                │  └─ Direct: calls within the process, no socket, no encoding
//	                └─ partition unset ──────> Unrouted (the routing client)
//
// Handler implements the generated service interface with errors of the domain
// (task.Error); Server turns them into statuses at the edge, so a caller within
// the process gets them as they are.
//
// # What a call waits for
//
// A single call waits until its partition is loaded, and is tried once more when
// it caught the partition closing. A request with one batch waits too, and is not
// tried again. Where there are several, none waits for another's partition: when
// one is loading or closing its items are answered NOT_READY or PARTITION_CLOSING
// at once and the caller sends them again. All items of a batch are started before
// the first is waited for, so they leave in one commit.
//
// # Polls
//
// A poll waits as long as it asks for, else the node's setting (60 s), and ends
// empty one second before the call's deadline, or a quarter of a deadline that
// is shorter than four seconds: "no task" is an answer, not a timeout. A grant
// whose reply has nowhere to go is released at once: the handler looks at its
// context before it returns, and the call's stats handler reports a reply that
// could not be written. A reply that is lost later than that is found by its
// lease.
//
// # Sizes
//
// Requests over the limit are refused as INVALID with their size, the limit and
// the setting. gRPC would answer RESOURCE_EXHAUSTED, which clients retry for
// ever, so its own limit is 36 MiB, which is 4 MiB above the
// highest that ours may be set to.
//
// # Stopping
//
// Stop says NOT_SERVING, ends polls with SHUTDOWN, refuses new ones, waits for
// the calls that run, and closes the connections that are left when its context
// ends. The engine is stopped by its owner after that.
//
// # Decisions
//
// A handler that panics takes the process down. It may have panicked under a
// partition's lock, and a node that hangs is worse than one that is started
// again: what it accepted is on disk.
package server
