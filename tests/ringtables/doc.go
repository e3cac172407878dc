// Command ringtables measures the ring and writes the tables of docs/routing.md:
// how long lookups and builds take, how evenly partitions lie on the nodes, and how
// many move when a node leaves; each beside the same figure for the list of nodes
// that the library consistent itself offers, GetClosestN.
//
// Spread, movement and the figures of tests/routesim are the same on every machine,
// and tests hold the page to them. Times are the best of many short rounds, so that other work on the machine
// disturbs them little. The text of the page around the tables stays as it is.
//
// Usage: ringtables -out PAGE [-table NAME]
package main
