// Package postgres is the durable store that many nodes share: a schema in a
// PostgreSQL database of version 15 or newer.
//
// [Migrate] makes or updates the tables, [Status] tells their version, [Open]
// opens them. [Store] is a store.Store and a store.Catalogue, plus
// [Store.Healthy], which turns into an error while a commit hangs.
//
//	options.go     what can be set, and what a connection is told
//	server.go      which servers and roles are refused
//	migrate.go     versions of the tables
//	store.go       connections, and the one place where a statement runs
//	statements.go  the texts of all statements for one schema
//	acquire.go     taking partitions
//	parts.go       the commit statement, put together of parts
//	commit.go      mutations in, outcomes out
//	read.go        scans and look-ups
//	catalogue.go   the list of partitions, settings documents
//	errors.go      what an error means: for the row, and for the operator
//	vacuum.go      cleaning up after deletes
//
// # Tables
//
//	format     one row: version of the tables, store id
//	partition  key | names, number | epoch, holder | metadata         fillfactor 50
//	task       key, pri, id  | body
//	scheduled  key, due, id  | body      and an index on key, id
//	lease      key, id       | body
//	dead       key, id       | body
//	request    key, name     | id, at
//	settings   namespace, queue, type | version, document
//
// What stands before the first bar is the primary key. A body is a row's
// encoding of package row, so that a new field of a task is no migration. Names
// are bytes: a zero byte in a text column would fail everybody's commit. Rows
// carry the partition's key of 8 bytes instead of its names (text keys cost a
// quarter to a half more). A key is drawn at random, so that a database restored
// from a backup never gives an old key to another partition. Ids are stored less
// 2^63: the server has no unsigned numbers, and so they keep their order. A
// request id of more than 255 bytes is stored as its hash, as an index takes no
// more than 2,700.
//
// No update touches an indexed column. A task row is written once; its first
// grant is folded into it, later ones are small rows of lease.
//
// # The commit
//
// A call is one statement, whatever the number of partitions, run in a
// transaction of its own: one round trip.
//
//	WITH fence AS (SELECT key, epoch, holder FROM partition WHERE key = ANY($1) ORDER BY key FOR SHARE),
//	 ok AS (SELECT key FROM fence WHERE its epoch is the one in $2),
//	 put_tasks AS (INSERT INTO task SELECT ... FROM unnest($3, $4, $5, $6) w WHERE w.key IN ok),
//	 delete_tasks AS (DELETE FROM task WHERE ...)
//	SELECT key, epoch, holder FROM fence
//
// Only the parts that a call needs are in its text. The fence locks first and
// compares afterwards, which is what makes it one: a take ([Store.Acquire]) updates
// the partition's row, which conflicts with the share lock. A commit that locked
// first is waited for, and its rows are seen by whoever took the partition; one
// that comes later finds the new epoch, however late it arrives, stores nothing
// for that partition and tells its owner. The others of the call are stored. A
// weaker lock (FOR KEY SHARE), or none, lets rows of an earlier epoch appear; the
// stress test finds that. Locks are taken in the order of keys, so that calls do
// not wait for each other in a circle. A commit that writes metadata takes the
// stronger lock at once, a commit without changes none: it only asks whether the
// epochs hold.
//
// A call with more than 32 MiB of bodies is several statements. One that the
// server refuses because of a value in it (a row that exists already, say) is
// repeated mutation by mutation: the others are stored.
//
// # Outcomes
//
//	the server said                              outcome
//	done, and was ready for the next statement   Stored, or LostEpoch where the fence says so
//	an error of severity ERROR                   NotStored: it rolled back. Also for a statement
//	                                             cancelled or timed out while it waited for a lock
//	a warning that no standby confirmed          Unknown: stored here, perhaps gone after a fail-over
//	that it ends the connection (FATAL)          Unknown: it may have ended after its commit
//	nothing: broken connection, deadline         Unknown
//	nothing, as no connection could be had, or
//	not a byte of the statement was sent         NotStored
//
// An answer is read to its end before it counts: rows and even the word that a
// statement is complete come before the commit. When a caller's context ends, the
// server is asked to cancel and has a second to say what became of the statement.
// A statement whose connection broke may still run, or wait for a lock, until the
// server's own timeouts end it: law S5 to the letter.
//
// # What is durable when
//
// Stored means that the server has it on disk. A server with fsync or
// synchronous_commit off is refused, at each new connection. That nothing is lost
// when the database fails over to a standby takes a synchronous standby; without
// one the store can go back in time. When it sees that, by an epoch below the one
// it took, it logs the fact and Healthy stays red with [ErrWentBack] until it is
// opened anew. After a backup was restored, stop all nodes before the first is
// started again: a node that still holds a partition under an epoch which another
// node gets a second time cannot be told from it.
//
// # Plans
//
// A statement is prepared once in a connection and planned once, with settings
// under which the planner takes the indexes even while all tables are empty: plans
// made then are kept, and a scan of the whole table, which is cheapest just then,
// took 7.9 s for 500 deletes among 50,000 rows. For the same reason deletes look
// each row up (LATERAL ... OFFSET 0 keeps that a loop) and delete by its place,
// ctid, which cannot move meanwhile because a partition has one writer. The hot
// statements, as EXPLAIN shows them:
//
//	CTE Scan on fence
//	  CTE fence
//	    LockRows
//	      Index Scan using partition_pkey on partition
//	        Index Cond: key = ANY ($1)
//	  CTE delete_tasks
//	    Delete on task
//	      InitPlan
//	        Nested Loop
//	          Function Scan on w
//	            Filter: (hashed SubPlan) IS TRUE          the partition is ok
//	          Index Scan using task_pkey on task
//	            Index Cond: key = w.key AND pri = w.pri AND id = w.id
//	      Tid Scan on task
//	        TID Cond: ctid = ANY (...)
//	  CTE put_tasks
//	    Insert on task
//	      Function Scan on w
//
//	Limit                                                 a scan of tasks
//	  Index Scan using task_pkey on task
//	    Index Cond: key = $1 AND pri = $2 AND id > $3 AND id <= $4
//
// A test explains every statement on empty tables and refuses any that reads a
// table or an index whole. `go test -v -run Plans` prints them in full.
//
// # Vacuum
//
// A deleted row stays until a vacuum, and scans step over it. So scans begin at
// the levels that the holder keeps (row.Meta.Acks): after 50,000 completed tasks
// that nothing could clean up because of an open snapshot, a scan from the level
// touched 4 pages, from the start 666. Range deletes, which other stores need for
// the same end, find nothing to do here and cost one walk over what is dead. The store vacuums a table itself, after
// 50,000 rows of it were deleted by this node (Options.VacuumAfter), or after a
// twentieth of it when that is more: a vacuum reads the whole index. It skips what
// another node is vacuuming. For that the role has to own the tables; otherwise
// the server skips them with a warning in its log, and autovacuum, which is set to
// begin after 20,000 rows, does it once in its naptime. After a million completed
// tasks a scan took 0.1 ms, from the level and from the start alike.
//
// # Behind a pooler
//
// The store works behind a pooler that gives a server connection away after each
// transaction (pgbouncer's pool_mode = transaction), with [Options].Pooler set:
// every call is one transaction, there are no cursors, session locks or
// notifications. Statements are then not prepared but planned anew each time,
// which costs the server some 400 us a commit; and the session's settings cannot
// be set by us. Give them to the role, so that the server itself ends what hangs:
//
//	ALTER ROLE ... SET statement_timeout = '10s';
//	ALTER ROLE ... SET lock_timeout = '5s';
//
// Without the option the error of [Open] says that a pooler is there. Migrations
// work through a pooler too.
//
// # Decisions
//
// Two pools of connections: commits never wait for scans. Both are bounded, and a
// call that gets no connection before its deadline is NotStored.
//
// Only portable SQL: no advisory locks, notifications, triggers, functions or
// extensions, so that engines which speak PostgreSQL's protocol stay possible; a
// test reads the texts. What is PostgreSQL's own: the storage parameters of the
// tables, ctid, VACUUM, two questions to its catalogue. Only PostgreSQL is claimed
// and tested.
//
// A statement of parts instead of one statement for each kind in a pipeline: that
// took 102 us of the server per commit of one task instead of 59, and as much for
// big ones. COPY cost more than both.
//
// Measured on 2 cores that had much other work, PostgreSQL 15 with its defaults on
// the same machine, over a unix socket, with a sync for each commit, 256 B of
// payload that does not compress; CPU per task, here + on the server:
//
//	one commit of           1 task        32          128        512
//	add                     130 + 177 us  11.6 + 12.9  6.0 + 8.0  4.5 + 8.8
//	add + lease + delete    221 + 360 us  22.8 + 28.9  13 + 27    6.3 + 18.6
//	lease folded, delete    195 + 298 us  20.1 + 18.1  8.5 + 9.5  8.2 + 10.2
//	the same, pooler        308 + 726 us  16.3 + 29.0  8.8 + 19.7  6.9 + 10.4
//
// One task for each of 200 partitions in one commit costs 10.2 + 13.6 us; to take
// 1, 200 and 2,000 partitions 2, 9 and 38 ms; a scanned row 1.5 + 0.7 us, and
// 2.0 + 1.6 us when the page is bounded in bytes; a look-up 3.1 + 7.6 us. Single
// runs; differences under 30 % mean nothing.
package postgres
