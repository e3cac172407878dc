// Package dynamicconfig is how a running node or client is tuned: settings that
// are typed, described and bounded, and the file that gives them values.
//
// # Declaring a setting
//
// A setting is declared beside the code that reads it, as an immutable package
// variable. What it is read for, the whole process, a namespace or a task queue,
// is part of its Go type, so that a setting of task queues cannot be read
// without one:
//
//	var longPoll = dynamicconfig.PerQueue(dynamicconfig.Duration{
//		Key:     "matching.longPollExpirationInterval",
//		Default: time.Minute, Min: time.Second, Max: 5 * time.Minute,
//		Doc:     "How long a poll waits before it is answered empty.",
//	})
//
//	wait := longPoll.Get(snapshot, queue) // a time.Duration
//
// The kinds are [Bool], [Int], [Float], [String], [Duration], [Size], [Enum],
// [Struct], [List] and [Map]; [GradualOf] makes a scalar one that changes little
// by little. A process collects what its packages declare into a [Registry],
// which refuses two settings of one key, a default out of bounds and the like;
// nothing registers itself.
//
// # The file
//
// YAML, one entry a key. Keys and the words of the form are not case-sensitive,
// names of namespaces and task queues are.
//
//	matching.spreadRoutingBatchSize: 8          # short form: for everything
//
//	matching.numTaskqueueWritePartitions:       # long form
//	  - value: 4
//	  - value: 16
//	    constraints: {namespace: shop, taskQueueName: orders, taskType: activity}
//
// # Precedence
//
// An entry holds where all of its constraints are met. Of several that hold, the
// one with more constraints wins; of equally many, a task queue's name counts
// more than a namespace, and a namespace more than a task type:
//
//	rank  constraints                          rank  constraints
//	8     namespace, taskQueueName, taskType   4     taskQueueName
//	7     namespace, taskQueueName             3     namespace
//	6     taskQueueName, taskType              2     taskType
//	5     namespace, taskType                  1     none
//	                                           0     the default, in no file
//
// Two entries of one rank that hold for the same queue have the same
// constraints, and that is refused as a duplicate. So the order of the entries
// never decides anything.
//
// # Gradual change
//
// A setting whose change moves something, such as partitions to other nodes,
// would move all of it at once. A gradual one goes from an old value to a new
// one key by key between two times, or for a part of the keys:
//
//	matching.spreadRoutingBatchSize:
//	  - value: {old: 0, new: 8, start: 2026-12-01T10:00:00Z, end: 2026-12-01T11:00:00Z}
//
// Each key flips once, at an instant that depends on nothing but the key and the
// two times, hence at the same in every process. See [Gradual].
//
// # Mistakes
//
// [Registry.Parse] takes a file whole or not at all, and reports everything that
// is wrong with it at once, by line and column ([Problems]). A setting that was
// renamed or dropped is a warning and no mistake, so that an upgrade does not
// keep a node from starting.
//
// # Reading
//
// A [Snapshot] is immutable; whoever holds one reads it without a lock and
// without allocating, at the price of one map look-up for each of setting,
// namespace and queue, however many entries there are. A nil snapshot stands for
// all defaults. Package live keeps the snapshot in force and tells of changes;
// package file feeds it from a file.
//
// # Decisions
//
// Scope is a Go type and not a field: a field would be checked when the code
// runs, or never. More constraints win before heavier ones: "this type in this
// namespace" is narrower than "this name anywhere", and one rule is easier to
// keep in mind than a list. An exact duplicate is refused although an order could
// decide: one of the two is surely a mistake, and it would go unnoticed.
//
// Everything here is pure and may be used concurrently.
package dynamicconfig
