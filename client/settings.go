package client

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring/route"
)

var (
	timeout = dynamicconfig.Global(dynamicconfig.Duration{
		Key: "client.timeout", Default: DefaultTimeout, Min: 100 * time.Millisecond, Max: time.Hour,
		Doc: "The longest that a call but a poll may take. A caller's own deadline counts when it is earlier.",
	})
	longPollTimeout = dynamicconfig.Global(dynamicconfig.Duration{
		Key: "client.longPollTimeout", Default: DefaultLongPollTimeout, Min: time.Second, Max: time.Hour,
		Doc: "The longest that a poll may take. A caller's own deadline counts when it is earlier.",
	})
	batching = dynamicconfig.Global(dynamicconfig.Bool{
		Key: "client.batching", Default: true,
		Doc: "Whether concurrent adds, completions and heartbeats to one node leave in one call.",
	})
	batchCalls = dynamicconfig.Global(dynamicconfig.Int{
		Key: "client.batchCalls", Default: 4, Min: 1, Max: 1000, Unit: "calls",
		Doc: "How many joint calls may be in flight to a node, for each of adds, completions and heartbeats.",
	})
	batchBytes = dynamicconfig.Global(dynamicconfig.Size{
		Key: "client.batchBytes", Default: 1 << 20, Min: 1 << 10, Max: 64 << 20,
		Doc: "How large a joint call gets. What waits leaves once it reaches this, although a call is in flight.",
	})
	batchItems = dynamicconfig.Global(dynamicconfig.Int{
		Key: "client.batchItems", Default: 256, Min: 1, Max: 10_000, Unit: "items",
		Doc: "How many items a joint call gets; they bound it as its bytes do.",
	})
	batchStuck = dynamicconfig.Global(dynamicconfig.Duration{
		Key: "client.batchStuck", Default: 10 * time.Millisecond, Min: time.Millisecond, Max: time.Minute,
		Doc: "The age at which a call in flight no longer holds up what waits.",
	})
	retryBudget = dynamicconfig.Global(dynamicconfig.Float{
		Key: "client.retryBudget", Default: 0.2, Min: 0, Max: 10, Unit: "retries per call",
		Doc: "How many calls that failed at a node may be made again, for each call that is made. It keeps an overloaded " +
			"node from being called even more. Calls that never reached a node, re-routed ones and those that wait for a partition are not counted.",
	})
)

// Declared lists the settings of a client and of all that it is made of.
func Declared() []dynamicconfig.Declared {
	own := []dynamicconfig.Declared{timeout, longPollTimeout, batching, batchCalls, batchBytes, batchItems, batchStuck, retryBudget}
	own = append(own, wire.Declared()...)
	return append(own, route.Declared()...)
}

// Settings are what may change while a client runs. The zero value of a field
// means its default; a bound may be lifted by a large number.
type Settings struct {
	// Timeout and LongPollTimeout cap the caller's own deadlines, default
	// [DefaultTimeout] and [DefaultLongPollTimeout].
	Timeout, LongPollTimeout time.Duration
	// MaxPayloadBytes of one task, default 1 MiB (matching.maxPayloadBytes). A
	// larger one is refused before it is sent.
	MaxPayloadBytes int

	// NoBatching sends every call alone.
	NoBatching bool
	// BatchCalls in flight to a node, for each of adds, completions and
	// heartbeats, default 4.
	BatchCalls int
	// BatchBytes of one call, default 1 MiB. What waits leaves once it
	// reaches this, although a call is in flight.
	BatchBytes int
	// BatchItems of one call, default 256; they bound it like BatchBytes.
	BatchItems int
	// BatchStuck is the age at which a call in flight no longer holds up what
	// waits, default 10 ms. It is looked at when a call comes; there is no
	// timer.
	BatchStuck time.Duration

	// RetryBudget is how many calls that failed at a node may be made again, for
	// each call that is made, default 0.2; negative: none.
	RetryBudget float64
}

// SettingsIn returns the settings that hold.
func SettingsIn(in *dynamicconfig.Snapshot) Settings {
	s := Settings{
		Timeout: timeout.Get(in), LongPollTimeout: longPollTimeout.Get(in), MaxPayloadBytes: wire.LimitsIn(in).PayloadBytes,
		NoBatching: !batching.Get(in), BatchCalls: batchCalls.Get(in), BatchBytes: int(batchBytes.Get(in)),
		BatchItems: batchItems.Get(in), BatchStuck: batchStuck.Get(in), RetryBudget: retryBudget.Get(in),
	}
	if s.RetryBudget == 0 {
		s.RetryBudget = -1
	}
	return s
}

func (s Settings) withDefaults() Settings {
	d := SettingsIn(nil)
	setDefault(&s.Timeout, d.Timeout)
	setDefault(&s.LongPollTimeout, d.LongPollTimeout)
	setDefault(&s.MaxPayloadBytes, d.MaxPayloadBytes)
	setDefault(&s.BatchCalls, d.BatchCalls)
	setDefault(&s.BatchBytes, d.BatchBytes)
	setDefault(&s.BatchItems, d.BatchItems)
	setDefault(&s.BatchStuck, d.BatchStuck)
	if s.RetryBudget == 0 {
		s.RetryBudget = d.RetryBudget
	}
	return s
}

// setDefault replaces what is not positive.
func setDefault[T ~int | ~int32 | ~int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}

// QueueSettings are what may be another for each task queue. Nodes and clients
// have to have the same. The zero value means the defaults.
type QueueSettings struct {
	// Counts are the partitions of the queue when no node reported them, default
	// 1 and 1 (matching.numTaskqueueWritePartitions and ...ReadPartitions).
	Counts partition.Counts
	// Spread is how partitions are kept on different nodes, default not at all
	// (matching.spreadRoutingBatchSize).
	Spread route.BatchSizes
}

// counts returns valid ones; s may be nil.
func (s *QueueSettings) counts() partition.Counts {
	if s == nil {
		return partition.Counts{Read: 1, Write: 1}
	}
	c := s.Counts
	c.Write = max(c.Write, 1)
	c.Read = max(c.Read, c.Write)
	return c
}

// batchSize returns the one in force for a partition now; s may be nil.
func (s *QueueSettings) batchSize(id partition.ID) int32 {
	if s == nil {
		return 0
	}
	return batchSize(&s.Spread, id)
}

// batchSize looks at the clock only during a change.
func batchSize(spread *route.BatchSizes, id partition.ID) int32 {
	var now time.Time
	if spread.Changes() {
		now = time.Now()
	}
	return spread.At(id, now)
}

// sources are where a client's settings come from.
type sources struct {
	settings func() *Settings
	// countsOf and batchSize are apart so that a call reads only what it needs.
	countsOf  func(partition.Queue) partition.Counts
	batchSize func(partition.ID) int32
}

// completed adds the defaults, anew only when the settings changed.
func completed(settings func() Settings) func() *Settings {
	type pair struct{ given, whole Settings }
	var last atomic.Pointer[pair]
	return func() *Settings {
		given := settings()
		p := last.Load()
		if p == nil || p.given != given {
			p = &pair{given, given.withDefaults()}
			last.Store(p)
		}
		return &p.whole
	}
}

// sources returns where the settings come from: the live ones, or the functions,
// or the defaults.
func (o Options) sources() (sources, error) {
	if o.Dynamic != nil {
		if o.Settings != nil || o.Queues != nil {
			return sources{}, errors.New("both Dynamic and Settings or Queues are set: live settings give all of them")
		}
		return sources{
			settings: live.Cached(o.Dynamic, SettingsIn),
			countsOf: func(q partition.Queue) partition.Counts { return wire.CountsIn(o.Dynamic.Snapshot(), q) },
			batchSize: func(id partition.ID) int32 {
				spread := route.BatchSizesIn(o.Dynamic.Snapshot(), id.Queue)
				return batchSize(&spread, id)
			},
		}, nil
	}
	settings, queues := o.Settings, o.Queues
	if settings == nil {
		settings = func() Settings { return Settings{} }
	}
	if queues == nil {
		queues = func(partition.Queue) *QueueSettings { return nil }
	}
	return sources{
		settings:  completed(settings),
		countsOf:  func(q partition.Queue) partition.Counts { return queues(q).counts() },
		batchSize: func(id partition.ID) int32 { return queues(id.Queue).batchSize(id) },
	}, nil
}
