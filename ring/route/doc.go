// Package route finds the node that owns a partition. Clients and nodes share it,
// so that the one who calls and the one who is called agree.
//
//	partition ──key──> hash ──mod slots──> list of nodes ──index──> owner
//
// # Basic routing
//
// Without spreading (batch size 0) each partition has a key of its own,
// "namespace:rpc_name:task_type", and belongs to the first node of the key's list.
// Partitions are placed independently of each other: of 8 partitions on 10 nodes
// some node usually has two, and one with three is no surprise.
//
// # Spread routing
//
// With batch size b the partitions of a queue come in batches of b that share a
// key, "namespace:queue:batch:task_type", and partition p belongs to node p mod b
// of the key's list. With b = 8, partition 25:
//
//	batch 25 / 8 = 3, index 25 mod 8 = 1, key ns:orders:3:2
//	list of that key's slot: node-5, node-1, node-4, ...
//	                                 ^^^^^^ the owner
//
// # Laws
//
//  1. The key of the root, and so its owner, is the same with and without
//     spreading: batch 0 is left out of the key, its index is 0.
//  2. With b nodes or more no two partitions of a batch share a node.
//  3. With n < b nodes the list begins anew behind its end: position index mod n,
//     so no node has more than one partition of a batch above another. But then
//     almost every partition moves when n changes: keep b well below n, see
//     [TooWide].
//  4. The number of partitions is in no key: changing it moves nothing.
//
// A larger batch spreads better and costs little as long as it is well below the
// number of nodes; docs/routing.md has the figures.
//
// # Changing the batch size
//
// A new batch size moves most partitions, so it is given as a gradual change, and
// decided before this package is asked: the batch size that is passed in is the one
// in force for that partition at that moment.
//
// Everything here is pure, may be used concurrently, and allocates nothing unless
// it says so.
package route
