// Package balance picks the partition that a call goes to: [Balancer.PickWrite]
// for adds, [Balancer.PickRead] for polls. One policy stands in one file.
//
//	write.go   uniform at random; by request id when the add has one
//	read.go    the fewest outstanding polls of this process
//	queues.go  the counters of all queues, bounded
//
// Counts say how many partitions there are; where they come from is the
// caller's business. What is not known counts as one partition, the root.
//
// # Invariants
//
//	B1  the sum of a queue's counters is the number of its unreleased tokens,
//	    under any order of picks, releases, growth and shrinkage
//	B2  a counter never falls below zero: a token is released exactly once,
//	    however often Release is called
//	B3  what is kept of queues is bounded by [MaxIdleQueues] plus the queues with
//	    outstanding polls
//
// The package is pure: the random source is an argument, and nothing waits.
// Everything may be called from any number of goroutines.
package balance
