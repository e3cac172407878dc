// Package client is how programs reach matching nodes: a client of the
// service that routes by itself, and a worker on top of it.
//
// [Client] implements matchingpb.MatchingServiceClient, so a frontend, a worker
// and a node use it as they would a plain gRPC client. Two things happen on the
// way of a call that nobody sees: the choice of the partition, and the choice
// of the node.
//
//	c, err := client.NewClient(client.Options{Addresses: []string{"10.0.0.1:7233"}})
//	out, err := c.AddTask(ctx, &matchingpb.AddTaskRequest{...})
//	...
//	c.Stop()
//
// # The picture
//
//	AddTask     PollTask     CompleteTask, any call with a token
//	   |            |                  |
//	   v            v                  |  the token names its partition
//	 pick a partition                  |
//	   counts  <- replies, settings    |
//	   policy  <- client/balance       |
//	   |            |                  |
//	   +------------+------------------+
//	                v
//	 trip: which node                    Ring.Route, or where NOT_OWNER pointed
//	                |
//	                v                    natural batching of adds, completions
//	 lane to the node                    and heartbeats; polls and others pass by
//	                |
//	                v
//	 connection (client/conn), or the server itself when it runs in this process
//	                |
//	             an error: client/retry says stop, again, elsewhere, with what wait
//
// # Words
//
//	whole queue   a request without a partition; the client picks one. A request
//	              that names one, also 0, and a token go where they say.
//	counts        how many partitions of a queue are written to and read from.
//	              Nodes report them with every answer; the client keeps what it
//	              heard, and goes by its settings until then.
//	try, trip     a try is one call to one node; a trip is all tries for one call
//	              of the caller's.
//	hint          the node that a NOT_OWNER answer names.
//	lane          what waits to leave for one node, of one kind, with equal
//	              metadata.
//	lone, joint   a call for one caller, a call for several.
//	grant         a task at a worker, with its lease.
//
// # Invariants
//
//	P1  a lone call leaves at once, in its caller's goroutine, as the plain unary
//	    call; there is no timer in a lane
//	P2  what comes while a call of its lane is in flight leaves in one call when
//	    that ends, or when a batch is full; at most BatchCalls are in flight
//	P3  a caller leaves at its own deadline, and learns of its own item only
//	P4  only calls that send the same metadata, and no call options, are joined
//	P5  an add without request id is never repeated after an unknown outcome
//	P6  NOT_OWNER and STALE_PARTITION_COUNTS end here: callers get NOT_READY when
//	    the client cannot resolve them in time
//	P7  every poll counts at its partition until it came back, exactly once
//	P8  a worker never holds more tasks than it has free handlers, and never
//	    forgets one: a grant is handled, settled, or given back
//	P9  Stop and Run return when every goroutine has ended
//
// # Errors
//
// A caller gets gRPC statuses, as from any gRPC client, with the service's
// reasons (matching/wire reads them). UNAVAILABLE means that surely nothing was
// done; UNKNOWN with OUTCOME_UNKNOWN that nobody can tell. That a call never left
// this process is known for sure, because gRPC names the peer of every call that
// did.
//
// # Worker
//
// [Worker] polls every read partition, divides its free handlers over the polls,
// runs the handlers, extends the leases of what runs every third of their
// duration, a call a node, and settles. A free handler is asked for at once;
// those that become free together are asked for together. When its context
// ends it cancels its polls, gives back what still arrives, and waits for the
// handlers:
//
//	taking ──ctx ends──> cancelling polls ──all back──> handlers finish ──> returned
//	                        5 s at most                 DrainTimeout, then their
//	                                                    contexts end
//
// # Where to start reading
//
//	client.go     Client, its nodes, Stop
//	trip.go       where a call goes and what follows an error
//	lane.go       natural batching, of any kind of call
//	add.go        AddTask, alone and joined; addmany.go AddTasks
//	poll.go       PollTask and where polls went
//	settle.go     calls with a token; parts.go, many.go, fail.go batches of them
//	operators.go  calls about whole queues: ask all partitions, add up
//	frontend.go   the service served by routing, for requests without a partition
//	worker.go     what a user of Worker sees; run.go, poller.go, slots.go,
//	              execution.go, heartbeat.go how it works
//
// # Decisions
//
// One call in flight, not four. Four are allowed, but the others leave only with
// full batches: while one is in flight, what waits costs nothing and the next
// call carries more. Cutting what waits into four calls at once was rejected
// because a call costs about 120 us of CPU and an item of a batch about 1.
//
// A batch of a caller's own (AddTasks without a partition) is dealt out item by
// item, in turn from a random start. One partition for the whole batch would be
// simpler, but a loader that adds in large batches would then fill one partition
// after the other.
//
// Calls to a server in this process are not joined: they cost no more alone,
// and the node joins what reaches the store.
package client
