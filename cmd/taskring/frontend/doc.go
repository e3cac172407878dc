// Package frontend is `taskring frontend`: a process without partitions and
// without a store that takes requests for whole task queues and routes them to
// the nodes that own the partitions.
//
//	program in any language ── AddTask{queue} ──> frontend ── AddTask{queue, partition 3} ──> node
//
// It is for programs that do not route by themselves; Go programs that embed the
// client, and nodes, need none. Any number of them may run side by side, as they
// share nothing.
//
// What callers never see is how partitions lie on nodes:
//
//	F1  A request that picks a partition is refused, as whoever picks has to know the
//	    counts and the owner, and then talks to the owner. Methods that are about one
//	    partition, such as DescribePartition, name it and are routed. Tokens, and
//	    batches of grants, carry theirs inside.
//	F2  NOT_OWNER and STALE_PARTITION_COUNTS are not passed on, neither as the error of
//	    a call nor as that of an item; nor is a poll told to move.
//
// Stopping: not ready and NOT_SERVING at once; polls that wait are cancelled at
// their nodes, so that no task is on its way to nobody, and answered with SHUTDOWN;
// what else runs is answered; what is left after --shutdown-timeout is broken off.
//
//	command.go  flags, from start to stop
//	server.go   the gRPC and the HTTP server
//	guard.go    F1 and F2, and counting calls
//	polls.go    polls that wait, for the stop
package frontend
