// Package ring is the table from which every process of a cluster reads, by itself
// and without asking, which node owns a key.
//
// A [Ring] is built from the set of members and then never changes; a [Builder]
// makes the next one when members come or go. It gives each [Key] a list of all
// nodes. The first node of the list owns the key; keys that are to lie on different
// nodes share a list and take one position each (package route does that for the
// partitions of a queue).
//
//	                        ┌ slot 0     node-7 node-2 node-5 ...
//	key ──xxhash64──> mod ──┼ slot 1     node-1 node-7 node-3 ...
//	                        └ slot 4092  node-2 node-9 node-1 ...
//	                                     owner  positions 1, 2, ...
//
// # Laws
//
//  1. A ring is a pure function of the set of nodes: their order, the history of
//     joins and leaves, and duplicates make no difference. testdata/golden pins
//     where keys go.
//  2. [Ring.Lookup] gives what the library consistent gives for the same key, when
//     it is fed the sorted names.
//  3. [Ring.LookupN]: position 0 is Lookup; the list of n is the beginning of the
//     list of n+1; nodes are distinct; its length is min(n, nodes); none for n <= 0
//     and for an empty ring, of which Lookup says that it is empty.
//  4. [Ring.At] is position i of the whole list; behind its end, i modulo nodes.
//  5. No node owns more than weight * ceil(slots / points * load) slots.
//  6. When a node joins or leaves, few keys move that need not: with batches of 8
//     on 50 nodes 2.3 %, where 2 % have to. docs/routing.md has the figures.
//  7. No number of nodes and no accepted format makes it panic. Formats out of
//     bounds are refused when the Builder is made; a panic of the library while it
//     builds becomes an error and leaves the ring before in use.
//  8. Looking up neither allocates nor locks, and a reader sees one table for the
//     whole of a call, since a table never changes.
//  9. What a node carries besides name and weight never changes the table.
//
// # How a table is built
//
// Each slot has an owner and then a row of draws. The owner is the library's:
// consistent hashing with bounded loads. Positions 1 to 15 are draws without
// replacement: at position k the node, of those not in the row yet, with the highest
//
//	score = mix64(xxhash64(name) ^ mix64(xxhash64(slot) + k * salt))
//
// and of equal ones the first by name. From [Positions] on, k stays 16, so the rest
// of a list is in plain rendezvous order; it is not stored but found when asked for.
//
// A worked example with 7 slots, 3 anchors a node and load 1.2, so that no node may
// own more than ceil(7 / 3 * 1.2) = 3 slots (hashes by their first 16 bits). The
// nodes a, b and c have these anchors on the circle, and slots take the next anchor:
//
//	anchors  6651 a  679c c  78b5 a  7cff b  8b9f c  924d a  92ec b  a59f c  b285 b
//
//	slot  hash  owner                                     scores at position 1     row
//	0     34c9  a                                         b d9ef  c 9111           a b c
//	1     9f29  c                                         a 185b  b 7748           c b a
//	2     eac7  a: past the last anchor, from the first   b 3119  c 1b10           a b c
//	3     87b8  c                                         a 7888  b be59           c b a
//	4     2ba6  a: its third                              b 71a2  c 10e8           a b c
//	5     89be  c: its third                              a cba1  b 1d12           c a b
//	6     9aed  b: the next anchor is c's, which is full  a 5df4  c faca           b c a
//
// Key "ns:orders:2" hashes to slot 3: c owns it, b comes next.
//
// When b leaves, slots 0, 2 and 4 keep their owner and only the draws in which b won
// are drawn again: since each position has a salt of its own, that disturbs the
// positions behind it only where the two draws meet. In a list in which a removal
// shifts everything behind it (the nodes in the order of one circle, or of one
// rendezvous score) keys that sit on position i move when any of the i nodes before
// them leaves: with batches of b that is (b + 1) / 2 times as many as have to.
//
// # Weights
//
// A node of weight w has w points, virtual names that hash on their own: name,
// name#1 to name#(w-1). Each takes part in the library's ring and in the draws, where
// the best of them counts. So a weight that grows adds points and leaves the others
// alone. Shares come within about 25 % of the weights. Weight 0 is not on the ring.
// Names therefore hold no "#".
//
// # What must agree
//
// [Format], the constants beside it and the way keys are built are wire protocol. The
// format's [Format.Fingerprint] stands in the store and is compared by
// [Format.Match] before a process works with others. [Ring.Fingerprint] identifies
// the members that a ring was built from; it differs for a moment whenever members
// change and is for finding out why two processes disagree.
//
// # Limits
//
// The library sorts all anchors again for each point that it adds, so building takes
// time by the square of the points: about 0.2 s at 200, several seconds at 1,024, which
// is the most by default. Meanwhile the ring before is in use. Slots should be at
// least 20 times the points ([Ring.Crowded]).
//
// # Decisions
//
// GetClosestN of the library is not used: it sorts all names on every call, refuses
// lists longer than the members, and gives the same second node to all keys of the
// same owner, so that the whole load of a node that leaves falls on one other.
//
// Rows are stored for 16 positions, 2 bytes each (128 KiB at any number of nodes from
// 16 on), and not for all nodes (1.6 MiB at 200): batches of more than 16 are rare.
//
// Draws have no bound on how many a node may win, as owners have. With one of 1.15
// the fullest of 200 nodes falls from 1.29 to 1.18 times the mean, and what moves
// when one leaves grows from 0.55 to 0.77 %: partitions are many and small, moves
// are felt.
//
// One node with a bad name makes a build fail, rather than be left out in silence: it
// is checked by [ValidateName] where the node starts, so it does not happen unless
// processes of different versions meet, and then somebody should know.
package ring
