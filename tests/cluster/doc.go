// Package cluster tests nodes and clients together: real nodes with their
// stores and ports, real clients and workers, in one process.
//
//	client_test.go   producers, a worker and a node: every task comes once, by
//	                 any way in
//	bench_test.go    what a task costs both sides together
//
// Nodes listen on free ports of the loopback interface; nothing here depends on
// how long anything takes.
package cluster
