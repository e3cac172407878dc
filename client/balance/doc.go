// Package balance picks the partition that a call goes to:
// [Balancer.PickWritePartition] for adds, [Balancer.PickReadPartition] for polls.
//
//	write.go   evenly at random; by how far backlogs are below their cap when the
//	           counts tell; by request id when the add has one
//	read.go    the fewest outstanding polls of this process; under a backlog by
//	           backlogs, combined with the outstanding polls
//	force.go   to where a test says
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
//	B4  the mean of the tasks that adds stand for is one an add, whatever the counts
//
// # Old figures
//
// A backlog figure that a poll is sent by may be seconds old. The largest share of
// all polls that waited at one of 8 partitions, while a wave of tasks came to one
// after the other, by the age of the figures (TestOldFiguresDoNotHerd), and in
// brackets what weights alone give:
//
//	age                        0 s          1 s          3 s          10 s
//	20 clients with 20 polls   .17 (.35)    .74 (.91)    .74 (.99)    .74 (.99)
//	400 clients with 1 poll    .36 (.38)    .89 (.97)    .96 (.99)    .99 (.99)
//
// A client with a single poll knows nothing that the figure does not say: many of
// them follow an old one all the same. What helps then is that the partition hands
// its polls on.
//
// # Decisions
//
// Polls by weight alone, the common rule, were rejected: all of them end up where
// the figure was largest, and wait there when it is out of date. Weights that are
// damped (by a root, a logarithm) were rejected too: polls that come back soon pick
// so often that in the end nearly all of them stay where the figure is wrong.
//
// The package is pure: the random source is an argument, and nothing waits.
// Everything may be called from any number of goroutines.
package balance
