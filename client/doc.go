// Package client is how programs reach matching nodes: a client of the
// service that routes by itself, and a worker on top of it.
//
// # Use
//
// One [Client] serves a whole process: make it with [NewClient], share it, Stop it
// in the end. Its methods are those of the service and may be called concurrently.
//
//	c, err := client.NewClient(client.Options{Addresses: []string{"10.0.0.1:7233"}})
//	...
//	defer c.Stop()
//	queue := partition.Queue{Namespace: "default", Name: "mails", Type: partition.Activity}
//	out, err := c.AddTask(ctx, &matchingpb.AddTaskRequest{TaskQueue: wire.EncodeQueue(queue), Payload: payload})
//
// A [Worker] takes tasks and gives them to a [Handler] until its context ends:
//
//	w, err := client.NewWorker(c, client.WorkerOptions{Queue: queue, Concurrency: 16, Handler: handle})
//	...
//	err = w.Run(ctx)
//
// What the handler returns decides what becomes of the task:
//
//	nil                  it is completed
//	an error, a panic    it failed, and is tried again after a rest that grows, until
//	                     its attempts are used up and it is a dead letter
//	NonRetryable(err)    it is a dead letter at once
//	RetryAfter(err, d)   it is tried again after d
//	ErrRelease           it goes back as if it had never been handed out
//
// WorkerOptions.OnFailure is told which of these came of a failure. Leases need no
// care: they are extended while a handler runs, and its context ends when the task
// is no longer its own. An error of a call that no connection was made for matches
// [ErrUnreachable].
//
// The rest of this page is for those who change the package.
//
// # What it does
//
// [Client] implements matchingpb.MatchingServiceClient, so a frontend, a worker
// and a node use it as they would a plain gRPC client. Two things happen on the
// way of a call that nobody sees: the choice of the partition, and the choice
// of the node.
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
//	 trip: which node                    ring/route, or where NOT_OWNER pointed
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
//	view          the ring of the members that are known, as a [Ring] gives it.
//	              Before the first complete one calls wait.
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
//	P10 counts, partition and node of a call are decided without a lock that others
//	    hold for long and without an allocation
//	P11 what failed at nodes is made again at most once for five calls, after the
//	    first hundred: [Settings].RetryBudget
//
// # Errors
//
// A caller gets gRPC statuses, as from any gRPC client, with the service's
// reasons (matching/wire reads them). UNAVAILABLE means that surely nothing was
// done; UNKNOWN with OUTCOME_UNKNOWN that nobody can tell. That a call never left
// this process is known for sure, because gRPC names the peer of every call that
// did.
//
// # Counts that travel
//
// Each balanced call carries the counts it was picked by, each answer, also an
// error, the node's:
//
//	client                                  node
//	pcnt-bin: 4/4 ───────────────────────>  8/8 is far off: STALE_PARTITION_COUNTS
//	learn 8/8, pick anew, once  <─────────  trailer pcnt-bin: 8/8
//	pcnt-bin: 8/8 ───────────────────────>  OK
//
// A proxy may drop what it does not know. Without trailers the client goes by what
// comes in messages (answers of polls and batches, details of errors), and by its
// settings; ABORTED without any detail then counts as stale counts.
//
// # Traces
//
// With [Options].Tracer each call of a caller's is a span, however many tries it
// takes, and each handler another one. The trace context of an add travels in the
// headers of its task (W3C traceparent), not in the metadata of the call, so that
// adds of different traces leave together. The stats handler of otelgrpc, as a
// dial option, adds the tries.
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
//	ring.go       where partitions lie: views of the members, Route
//	counts.go     what is known of partition counts; countscache.go how it is kept
//	settings.go   what may change while a client runs
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
// Around other clients: metricclient.go measures, retryclient.go repeats, both by
// wrapped.go.
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
