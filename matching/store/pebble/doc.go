// Package pebble is the durable store of a single node: a Pebble database
// (a log-structured merge tree) in one directory that it has to itself.
//
// [Open] opens or creates the directory. [Store] is a store.Store and a
// store.Catalogue, plus [Store.Healthy], which turns into an error while the
// disk hangs.
//
// # What is durable when
//
// A commit is one Pebble batch for all partitions of the call, appended to the
// write-ahead log and synced before any of it is answered "stored". Rows become
// visible to reads when they are in the log's memory table, a moment before the
// sync: a reader may see what is not answered yet, never miss what is.
//
//	Commit ──> check epochs ──> batch into log and memory table ──> fsync ──> Stored
//	              └────── under one lock ──────┘                       └─> error: exit 74
//
// Acquire goes the same way. As epochs are checked and batches ordered under one
// lock, a commit that passed its check stands in the log before the take that
// would have refused it, and is durable when the take is. Only one process has
// the directory, so epochs are kept in memory and are exact.
//
// There is no outcome Unknown here. Once a batch is on its way it is stored, or
// the process ends: an error of the log's files cannot be told from success by
// trying again, because an operating system may drop what it could not write and
// report the next sync as good. The process logs the reason and exits with
// [ExitStoreBroken]; starting it again is the recovery. A commit that hangs is
// not answered; Healthy complains once it is overdue, so that the server can
// refuse more. Background work that fails (flushing and compacting, on a full disk
// for example) is tried again for ever, with rests of up to a second in between,
// and logged at most once a second. Only [Open], which cannot go on before the
// log of the run before is flushed, gives up after a few tries and returns the
// error; all that was answered is safe in the log then.
//
// # Torn tail and corruption
//
// After a crash the log may end in a piece of a batch. It was never answered;
// recovery drops it. Every piece of the log also says up to where the log was
// synced when it was written, so a bad piece that a later one vouches for is
// damage, and Open refuses with an error instead of dropping what was answered.
// Blocks of the other files carry checksums. A read that meets a bad block
// returns an error, and so does each later one: the process goes on, since
// starting it again would find the same block.
//
// # Keys
//
// The first byte of a key is its kind. Numbers are big endian, so that keys sort
// as their parts do. A partition's names stand in its own row only; the row
// gives the partition a number of 4 bytes which the keys of its rows carry.
//
//	F                              format:    version, store id, time of creation
//	N                              the number that the next partition gets
//	p names number'4               partition: its number, epoch, holder, metadata
//	c names number'4               catalogue: nothing; there while metadata says "listed"
//	s names                        settings:  version, document
//	t number4 priority1 id8        task
//	d number4 due8 id8             scheduled
//	i number4 id8 due8             nothing; finds a scheduled row by its id
//	l number4 id8                  lease
//	x number4 id8                  dead
//	r number4 request id           request
//
//	names = namespace 00 01 queue name 00 01 type1, a zero byte in a name
//	        written 00 ff; number'4 is the partition's number within its queue
//
// Names written so sort as the names themselves, whatever bytes they hold, which
// a length in front would not: the catalogue is read in the order of its keys.
//
// Values are protobuf messages; those of tasks and leases are described in
// package row, the others beside their code.
//
// # Deletes
//
// Task rows are written once (law R2 of package row) and deleted with a single
// delete, which vanishes together with its row in the first flush or compaction
// that sees both. Any other kind may be written several times under one key,
// where a single delete would bring the older value back: they get plain
// deletes. Ranges become one range tombstone each.
//
// # Decisions
//
// Keys carry a number instead of names. With the names of an ordinary queue a
// task's key would be some 40 bytes instead of 14, in the log, in the memory
// table and in every comparison. The price is one look-up when a partition is
// first used.
//
// Mutations of a commit are written kind by kind and partition by partition: keys
// that arrive in order are cheaper to insert.
//
// Measured on 2 cores that had other work too, with 256 B of payload that does
// not compress and an fsync for each commit; CPU per task, flushes and
// compactions included:
//
//	one commit of           32 tasks   128    512
//	add                     10.2 us    4.7    2.9
//	add + lease + delete    13.2 us    5.9    4.9
//	lease folded, delete    10.8 us    4.3    2.5
//
// A scan costs 1.2 us a row. Over a million rows just deleted one by one it took
// 1.5 s, with one range delete besides 40 ms: scans begin above the levels that
// the holder keeps, and what lies below is swept by ranges.
//
// Memory tables of 8 to 64 MiB, no compression and no filters were tried too. No
// difference stood out from the noise of that machine, which was some 30 %, so
// these choices rest on reasons and not on figures: 32 MiB, as more makes
// recovery longer; the fastest compression, as it saves disk where payloads are
// text; filters of 10 bits a key, as looking up a finished task asks for seven
// keys that are not there.
//
// Pebble takes memory tables off its block cache. With a cache of 64 MiB and
// tables of 32 MiB nothing was ever cached and a look-up cost 40-60 us instead
// of 2.5-6; so the cache is made larger by two tables.
package pebble
