// Package bench is `taskring bench`: it measures a node as an application would
// use it, through the public client and its worker, with batching on.
//
//	flow     workers wait while producers add: a task goes straight through
//	backlog  all tasks are added first, then workers drain them
//	latency  flow at a fixed rate far below what the node can do
//
// # What is a producer and what a worker
//
// A producer is an application thread that keeps --outstanding adds in flight; a
// worker handles as many tasks at a time as a producer has adds in flight.
// Producers share one client, as the threads of one process do, and so do
// workers, which are one [client.Worker] with that many slots. Both sides run in
// this process; the node is a process of its own, on an empty temporary
// directory unless an address is given.
//
// # What is checked
//
// The payload of each task holds its number. A run notes the id that each add
// was answered with and the id under which each number was received: a task that
// was acknowledged and never received is lost, one received again is a
// duplicate, one received under another id than it was acknowledged with is an
// error. In the end the queue has to be empty. A run with any of these fails,
// after it printed its figures.
//
// # What is measured
//
// Rates count to the last answer of an add and to the last receipt. A latency is
// the time from the call of an add to the receipt of its task in a handler, on
// one clock. CPU is user and system time of each process over all phases; calls
// are gRPC calls of producers and workers; commits and records come from the
// node's metrics.
package bench
