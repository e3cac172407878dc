package wire

import (
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/partition"
)

// The settings that refusals name.
const (
	SettingPayloadBytes     = "matching.maxPayloadBytes"
	SettingHeaderBytes      = "matching.maxHeaderBytes"
	SettingFairnessKeyBytes = "matching.maxFairnessKeyBytes"
	SettingRequestIDBytes   = "matching.maxRequestIdBytes"
	SettingIdentityBytes    = "matching.maxIdentityBytes"
	SettingBatchItems       = "matching.maxBatchItems"
	SettingPollTasks        = "matching.maxPollTasks"
	SettingDelay            = "matching.maxDelay"
	SettingMinLease         = "matching.minLeaseDuration"
	SettingMaxLease         = "matching.maxLeaseDuration"
)

// maxPartitions of a queue: each costs a poll of its workers and a byte of every
// answer.
const maxPartitions = 4096

var (
	writePartitions = dynamicconfig.PerQueue(dynamicconfig.Int{
		Key: "matching.numTaskqueueWritePartitions", Default: 1, Min: 1, Max: maxPartitions, Unit: "partitions",
		Doc: "How many partitions new tasks go to. More of them spread a queue over more nodes and commit lanes; " +
			"each one has to be polled by some worker.",
	})
	readPartitions = dynamicconfig.PerQueue(dynamicconfig.Int{
		Key: "matching.numTaskqueueReadPartitions", Default: 1, Min: 1, Max: maxPartitions, Unit: "partitions",
		Doc: "How many partitions are polled; never fewer than are written to. To go down, lower the write count first: " +
			"partitions that still hold tasks are read until they are empty, whatever this says.",
	})

	maxPayloadBytes = dynamicconfig.Global(dynamicconfig.Size{
		Key: SettingPayloadBytes, Default: 1 << 20, Min: 1, Max: 16 << 20,
		Doc: "The largest payload of one task. Clients refuse a larger one before they send it, nodes refuse it in any case.",
	})
	maxHeaderBytes = dynamicconfig.Global(dynamicconfig.Size{
		Key: SettingHeaderBytes, Default: 16 << 10, Min: 1, Max: 1 << 20,
		Doc: "The most that keys and values of one task's headers take together.",
	})
	maxFairnessKeyBytes = dynamicconfig.Global(dynamicconfig.Size{
		Key: SettingFairnessKeyBytes, Default: 64, Min: 1, Max: 1 << 10, Doc: "The longest fairness key.",
	})
	maxRequestIDBytes = dynamicconfig.Global(dynamicconfig.Size{
		Key: SettingRequestIDBytes, Default: 256, Min: 1, Max: 4 << 10, Doc: "The longest request_id of an add.",
	})
	maxIdentityBytes = dynamicconfig.Global(dynamicconfig.Size{
		Key: SettingIdentityBytes, Default: 256, Min: 16, Max: 4 << 10,
		Doc: "The longest identity of a worker; also of its instance key and of the id of a poll.",
	})
	maxBatchItems = dynamicconfig.Global(dynamicconfig.Int{
		Key: SettingBatchItems, Default: 10_000, Min: 1, Max: 100_000, Unit: "items", Doc: "The most tasks, or tokens, in one batch.",
	})
	maxPollTasks = dynamicconfig.Global(dynamicconfig.Int{
		Key: SettingPollTasks, Default: 1_000, Min: 1, Max: 100_000, Unit: "tasks",
		Doc: "The most tasks that one poll is given. Asking for more is no error, it is cut.",
	})
	maxDelay = dynamicconfig.Global(dynamicconfig.Duration{
		Key: SettingDelay, Default: 365 * 24 * time.Hour, Min: time.Second, Max: 10 * 365 * 24 * time.Hour,
		Doc: "The furthest that a task may be put off, and the longest interval of a retry policy.",
	})
	minLeaseDuration = dynamicconfig.Global(dynamicconfig.Duration{
		Key: SettingMinLease, Default: time.Second, Min: 10 * time.Millisecond, Max: time.Hour,
		Doc: "The shortest lease that a task or a worker may ask for.",
	})
	maxLeaseDuration = dynamicconfig.Global(dynamicconfig.Duration{
		Key: SettingMaxLease, Default: 12 * time.Hour, Min: time.Second, Max: 7 * 24 * time.Hour,
		Doc: "The longest lease that a task or a worker may ask for.",
	})
)

// Declared lists the settings of this package, which nodes and clients share.
func Declared() []dynamicconfig.Declared {
	return []dynamicconfig.Declared{
		writePartitions, readPartitions, maxPayloadBytes, maxHeaderBytes, maxFairnessKeyBytes, maxRequestIDBytes, maxIdentityBytes,
		maxBatchItems, maxPollTasks, maxDelay, minLeaseDuration, maxLeaseDuration,
	}
}

// CountsIn returns the partition counts that the settings give a queue.
func CountsIn(in *dynamicconfig.Snapshot, q partition.Queue) partition.Counts {
	write := int32(writePartitions.Get(in, q))
	return partition.Counts{Write: write, Read: max(int32(readPartitions.Get(in, q)), write)}
}

// LimitsIn returns the limits that the settings give.
func LimitsIn(in *dynamicconfig.Snapshot) Limits {
	return Limits{
		PayloadBytes:     int(maxPayloadBytes.Get(in)),
		HeaderBytes:      int(maxHeaderBytes.Get(in)),
		FairnessKeyBytes: int(maxFairnessKeyBytes.Get(in)),
		RequestIDBytes:   int(maxRequestIDBytes.Get(in)),
		IdentityBytes:    int(maxIdentityBytes.Get(in)),
		BatchItems:       maxBatchItems.Get(in),
		PollTasks:        maxPollTasks.Get(in),
		Delay:            maxDelay.Get(in),
		MinLease:         minLeaseDuration.Get(in),
		MaxLease:         maxLeaseDuration.Get(in),
	}
}
