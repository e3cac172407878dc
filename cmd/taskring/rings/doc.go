// Package rings is `taskring ring`: looking at the ring of a list of nodes, which is
// the ring that every process of a cluster with these nodes computes.
//
//	show      the format and the view, for finding out why two processes disagree
//	members   how much each node gets
//	route     how the owner of a partition is found, step by step
//
// Nothing is asked of any node: names alone decide.
package rings
