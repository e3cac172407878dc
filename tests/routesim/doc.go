// Package routesim plays a cluster whose processes disagree about who its members
// are, and counts what that costs calls.
//
// 100 nodes and 50 clients each have a view of their own of the members: they hear
// of every change after a delay of their own, and their clocks differ. Clients call
// partitions of 10,000 queues. Nothing here is a model of routing itself: who owns a
// partition is decided by packages ring and ring/route, what a client does next by
// client/retry. Time is virtual and there is one thread, so a seed replays exactly.
//
//	                    ring of its own view           ring of its own view
//	client ── call ──> the node that owns p ──> holds p: OK
//	   ^                                          owns p by its view: takes p over, then OK
//	   │                                          else: NOT_OWNER{the node it thinks of}
//	   └────────── retry.Decide ──────────────────┘
//
// What a node does:
//
//	holds the partition                   serves
//	owns it by its view, nobody holds it  loads it, serves
//	... the holder is gone                takes it, serves
//	... the holder owns it no more        has it handed over, serves; the call waits
//	... the holder thinks that it owns it NOT_OWNER, with the holder and its epoch
//	does not own it by its view           NOT_OWNER, with whom it handed it to, else
//	                                      with the owner by its view
//
// So a partition is never taken from a node that lives and believes that it owns it:
// views come to agree by themselves, calls follow hints meanwhile.
//
// Where to start: scenario.go for what is played, world.go for views, node.go and
// call.go for what nodes and clients do, table.go for the figures in docs/routing.md.
package routesim
