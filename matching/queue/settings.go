package queue

import (
	"errors"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/match"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// books are the defaults of the ledger, which stand beside the code they are for.
var books = ledger.DefaultLimits()

var (
	pollOrder = dynamicconfig.PerQueue(dynamicconfig.Enum[match.Order]{
		Key: "matching.pollOrder", Default: match.NewestFirst,
		Choices: []dynamicconfig.Choice[match.Order]{
			{Name: "newestFirst", Value: match.NewestFirst, Doc: "Surplus workers stay idle, so that they can be let go."},
			{Name: "oldestFirst", Value: match.OldestFirst, Doc: "Work is spread evenly over the workers."},
		},
		Doc: "Which of the waiting polls is given the next task.",
	})
	pollerHistoryTTL = dynamicconfig.PerQueue(dynamicconfig.Duration{
		Key: "matching.pollerHistoryTTL", Default: 5 * time.Minute, Min: time.Second, Max: 24 * time.Hour,
		Doc: "How long a worker that polled is shown in the description of a queue.",
	})
	maxPollerHistory = dynamicconfig.PerQueue(dynamicconfig.Int{
		Key: "matching.maxPollerHistory", Default: 1000, Min: 1, Max: 100_000, Unit: "workers",
		Doc: "How many workers a partition remembers; the one that was not seen for longest gives way.",
	})

	leaseDuration = dynamicconfig.PerQueue(dynamicconfig.Duration{
		Key: "matching.leaseDuration", Default: books.LeaseDuration, Min: 10 * time.Millisecond, Max: 7 * 24 * time.Hour,
		Doc: "How long a worker has for a task whose add named no lease, counted anew with each heartbeat. Leases that run are not changed.",
	})
	maxAttempts = dynamicconfig.PerQueue(dynamicconfig.Int{
		Key: "matching.maxAttempts", Default: int(books.MaxAttempts), Min: 1, Max: 1_000_000, Unit: "attempts",
		Doc: "How often a task may fail, or its lease expire, before it goes to the dead letters; for tasks whose add named no number.",
	})
	maxDeliveries = dynamicconfig.PerQueue(dynamicconfig.Int{
		Key: "matching.maxDeliveries", Default: int(books.MaxDeliveries), Min: 1, Max: 1_000_000, Unit: "deliveries",
		Doc: "How often a task may be handed out, whatever became of it, before it goes to the dead letters.",
	})
	retryPolicy = dynamicconfig.PerQueue(dynamicconfig.Struct[task.RetryPolicy]{
		Key: "matching.retryPolicy",
		Fields: []dynamicconfig.Field[task.RetryPolicy]{
			dynamicconfig.FieldOf(dynamicconfig.Duration{
				Key: "initial", Default: books.Retry.Initial, Min: time.Millisecond, Max: 365 * 24 * time.Hour, Doc: "The rest after the first failure.",
			}, func(p *task.RetryPolicy) *time.Duration { return &p.Initial }),
			dynamicconfig.FieldOf(dynamicconfig.Float{
				Key: "factor", Default: books.Retry.Factor, Min: 1, Max: 100, Doc: "By how much each further rest is longer.",
			}, func(p *task.RetryPolicy) *float64 { return &p.Factor }),
			dynamicconfig.FieldOf(dynamicconfig.Duration{
				Key: "max", Default: books.Retry.Max, Min: time.Millisecond, Max: 365 * 24 * time.Hour, Doc: "The longest rest.",
			}, func(p *task.RetryPolicy) *time.Duration { return &p.Max }),
			dynamicconfig.FieldOf(dynamicconfig.Float{
				Key: "jitter", Default: books.Retry.Jitter, Min: 0.01, Max: 1,
				Doc: "The share by which a rest is shorter or longer at random, so that tasks that failed together do not come back together.",
			}, func(p *task.RetryPolicy) *float64 { return &p.Jitter }),
		},
		Check: func(p task.RetryPolicy) error {
			if p.Max < p.Initial {
				return errors.New("max is less than initial: the first rest would be longer than the longest one")
			}
			return nil
		},
		Doc: "How long a task rests after a failure; what the add of a task names wins.",
	})

	maxLeases = count("matching.maxLeases", books.MaxLeases, "tasks",
		"How many tasks of a partition may be with workers at a time. Further ones wait until some are settled.")
	maxPendingItems = count("matching.maxPendingItems", books.PendingItems, "tasks",
		"How many accepted adds of a partition may wait for the store. Further ones are refused until the store has caught up.")
	maxPendingBytes = size("matching.maxPendingBytes", books.PendingBytes,
		"How many bytes of tasks may wait for the store in a partition. Further adds are refused until the store has caught up.")
	maxLookups = count("matching.maxLookups", books.Lookups, "operations",
		"How many completions, failures and the like of a partition may wait for a look into the store. Further ones are refused.")

	readAheadItems = count("matching.readAheadItems", books.ReadAheadItems, "tasks",
		"How many ready tasks of a priority a partition keeps in memory; the others are read from the store when it is their turn.")
	readAheadBytes = size("matching.maxPartitionReadAheadBytes", books.ReadAheadBytes,
		"How many bytes of ready tasks a partition keeps in memory at most. Its share of matching.readAheadBytes may be less.")
	delayedItems = count("matching.delayedItems", books.DelayedItems, "tasks",
		"How many delayed tasks of a partition are kept in memory, those that are due first.")
	delayedBytes = size("matching.delayedBytes", books.DelayedBytes,
		"How many bytes of delayed tasks a partition keeps in memory; the bodies of the others are read when they are due.")
	leasedBytes = size("matching.leasedBytes", books.LeasedBytes,
		"How many bytes of tasks that are with workers a partition keeps in memory; the bodies of the others are read when they come back.")

	mutationItems = count("matching.maxMutationItems", books.MutationItems, "changes",
		"How many changes of a partition go into one commit; the others leave with the next one.")
	mutationBytes = size("matching.maxMutationBytes", books.MutationBytes,
		"How many bytes of tasks of a partition go into one commit; the others leave with the next one.")
	sweepRows = count("matching.sweepRows", books.SweepRows, "rows",
		"After how many deleted tasks of a priority a partition deletes the whole range that they lay in, so that later reads need not step over them.")
	sweepSpan = count("matching.sweepSpan", books.SweepSpan, "ids",
		"How many ids a range of deleted tasks has to span to be worth a record of its own.")
)

func count(key string, value int, unit, doc string) *dynamicconfig.QueueSetting[int] {
	return dynamicconfig.PerQueue(dynamicconfig.Int{Key: key, Default: value, Min: 1, Max: 10_000_000, Unit: unit, Doc: doc})
}

func size(key string, value int, doc string) *dynamicconfig.QueueSetting[int64] {
	return dynamicconfig.PerQueue(dynamicconfig.Size{Key: key, Default: int64(value), Min: 1 << 10, Max: 16 << 30, Doc: doc})
}

// Declared lists the settings of this package.
func Declared() []dynamicconfig.Declared {
	return []dynamicconfig.Declared{
		pollOrder, pollerHistoryTTL, maxPollerHistory,
		leaseDuration, maxAttempts, maxDeliveries, retryPolicy,
		maxLeases, maxPendingItems, maxPendingBytes, maxLookups,
		readAheadItems, readAheadBytes, delayedItems, delayedBytes, leasedBytes,
		mutationItems, mutationBytes, sweepRows, sweepSpan,
	}
}

// SettingsIn returns the settings that hold for a task queue.
func SettingsIn(in *dynamicconfig.Snapshot, q partition.Queue) Settings {
	return Settings{
		PollOrder: pollOrder.Get(in, q),
		PollerTTL: pollerHistoryTTL.Get(in, q), MaxPollers: maxPollerHistory.Get(in, q),
		Limits: ledger.Limits{
			ReadAheadItems: readAheadItems.Get(in, q), ReadAheadBytes: int(readAheadBytes.Get(in, q)),
			DelayedItems: delayedItems.Get(in, q), DelayedBytes: int(delayedBytes.Get(in, q)),
			LeasedBytes: int(leasedBytes.Get(in, q)), MaxLeases: maxLeases.Get(in, q),
			PendingItems: maxPendingItems.Get(in, q), PendingBytes: int(maxPendingBytes.Get(in, q)),
			Lookups:       maxLookups.Get(in, q),
			MutationItems: mutationItems.Get(in, q), MutationBytes: int(mutationBytes.Get(in, q)),
			SweepRows: sweepRows.Get(in, q), SweepSpan: sweepSpan.Get(in, q),
			LeaseDuration: leaseDuration.Get(in, q),
			MaxAttempts:   uint32(maxAttempts.Get(in, q)), MaxDeliveries: uint32(maxDeliveries.Get(in, q)),
			Retry: retryPolicy.Get(in, q),
		},
	}
}
