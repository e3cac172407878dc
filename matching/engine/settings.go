package engine

import (
	"cmp"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/matching/commit"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// settingMaxPartitions is a key that a refusal names.
const settingMaxPartitions = "matching.maxPartitions"

var (
	maxIdleTime = dynamicconfig.PerQueue(dynamicconfig.Duration{
		Key: "matching.maxTaskqueueIdleTime", Default: 5 * time.Minute, Min: 100 * time.Millisecond, Max: 7 * 24 * time.Hour,
		Doc: "After how long without use a partition is unloaded. The next call that needs it loads it again.",
	})
	preloadRate = dynamicconfig.Global(dynamicconfig.Float{
		Key: "matching.preloadRate", Default: 500, Min: 0.1, Max: 1_000_000, Unit: "partitions per second",
		Doc: "How many of the partitions that may hold tasks a node loads in a second after its start. The others are loaded when they are asked for.",
	})
	preloadConcurrency = dynamicconfig.Global(dynamicconfig.Int{
		Key: "matching.preloadConcurrency", Default: 8, Min: 1, Max: 10_000, Unit: "partitions",
		Doc: "How many partitions a node loads at a time after its start.",
	})
	readAheadBytes = dynamicconfig.Global(dynamicconfig.Size{
		Key: "matching.readAheadBytes", Default: 256 << 20, Min: 1 << 20, Max: 1 << 40,
		Doc: "How many bytes of ready tasks a node keeps in memory, all partitions together; each gets an equal share.",
	})
	maxPartitions = dynamicconfig.Global(dynamicconfig.Int{
		Key: settingMaxPartitions, Default: 100_000, Min: 1, Max: 10_000_000, Unit: "partitions",
		Doc: "How many partitions a node loads. Calls for further ones are refused; what is loaded stays.",
	})
	loadTimeout = dynamicconfig.Global(dynamicconfig.Duration{
		Key: "matching.partitionLoadTimeout", Default: 10 * time.Second, Min: 100 * time.Millisecond, Max: 10 * time.Minute,
		Doc: "How long loading a partition may take, and unloading an idle one.",
	})
)

// Declared lists the settings of the engine and of all that it is made of.
func Declared() []dynamicconfig.Declared {
	own := []dynamicconfig.Declared{maxIdleTime, preloadRate, preloadConcurrency, readAheadBytes, maxPartitions, loadTimeout}
	own = append(own, commit.Declared()...)
	return append(own, queue.Declared()...)
}

// Settings are what may change while the engine runs; they are read at each
// use. Zero values are the defaults.
type Settings struct {
	PreloadRate        float64 // partitions that may hold tasks, loaded per second after a start
	PreloadConcurrency int     // how many of them are loaded at a time

	ReadAheadBytes int           // of stored tasks kept in memory, all partitions together
	MaxPartitions  int           // that are loaded at a time
	LoadTimeout    time.Duration // of loading one partition, or unloading an idle one
}

// SettingsIn returns the settings that hold.
func SettingsIn(in *dynamicconfig.Snapshot) Settings {
	return Settings{
		PreloadRate: preloadRate.Get(in), PreloadConcurrency: preloadConcurrency.Get(in),
		ReadAheadBytes: int(readAheadBytes.Get(in)), MaxPartitions: maxPartitions.Get(in), LoadTimeout: loadTimeout.Get(in),
	}
}

func (s Settings) withDefaults() Settings {
	d := SettingsIn(nil)
	return Settings{
		PreloadRate:        cmp.Or(s.PreloadRate, d.PreloadRate),
		PreloadConcurrency: cmp.Or(s.PreloadConcurrency, d.PreloadConcurrency),
		ReadAheadBytes:     cmp.Or(s.ReadAheadBytes, d.ReadAheadBytes),
		MaxPartitions:      cmp.Or(s.MaxPartitions, d.MaxPartitions),
		LoadTimeout:        cmp.Or(s.LoadTimeout, d.LoadTimeout),
	}
}

// PerQueue is what may be another for each task queue. Zero values are the
// defaults.
type PerQueue struct {
	Counts      partition.Counts // how many partitions are read and written
	IdleTimeout time.Duration    // a partition that nobody used for so long is unloaded
}

// PerQueueIn returns what holds for a task queue.
func PerQueueIn(in *dynamicconfig.Snapshot, q partition.Queue) PerQueue {
	return PerQueue{Counts: wire.CountsIn(in, q), IdleTimeout: maxIdleTime.Get(in, q)}
}

func (s PerQueue) withDefaults() PerQueue {
	s.Counts.Write = max(s.Counts.Write, 1)
	s.Counts.Read = max(s.Counts.Read, s.Counts.Write)
	s.IdleTimeout = cmp.Or(s.IdleTimeout, maxIdleTime.Default())
	return s
}
