package server

import (
	"cmp"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// settingRequestBytes is a key that a refusal names.
const settingRequestBytes = "matching.maxRequestBytes"

// maxRequestBytes is the highest limit that may be set. gRPC's own lies above
// it, and cannot change while a server runs.
const maxRequestBytes = 32 << 20

var (
	requestBytes = dynamicconfig.Global(dynamicconfig.Size{
		Key: settingRequestBytes, Default: 8 << 20, Min: 64 << 10, Max: maxRequestBytes,
		Doc: "The largest request that a node takes. A larger one is refused, up to 36 MiB with a reason.",
	})
	pageSize = dynamicconfig.Global(dynamicconfig.Int{
		Key: "matching.defaultPageSize", Default: 100, Min: 1, Max: 10_000, Unit: "items",
		Doc: "How long a page of a list is when the request does not say.",
	})
	maxPageSize = dynamicconfig.Global(dynamicconfig.Int{
		Key: "matching.maxPageSize", Default: 1000, Min: 1, Max: 10_000, Unit: "items",
		Doc: "The longest page of a list. Asking for a longer one is no error, it is cut.",
	})
	unloadTimeout = dynamicconfig.Global(dynamicconfig.Duration{
		Key: "matching.partitionUnloadTimeout", Default: 30 * time.Second, Min: 100 * time.Millisecond, Max: 10 * time.Minute,
		Doc: "How long unloading a partition may take that an operator asks for.",
	})

	longPoll = dynamicconfig.PerQueue(dynamicconfig.Duration{
		Key: "matching.longPollExpirationInterval", Default: time.Minute, Min: 10 * time.Millisecond, Max: time.Hour,
		Doc: "How long a poll waits for a task before it is answered empty, when it does not say itself.",
	})
	longPollMargin = dynamicconfig.PerQueue(dynamicconfig.Duration{
		Key: "matching.longPollMargin", Default: time.Second, Min: time.Millisecond, Max: time.Minute,
		Doc: "How long before the deadline of its call a poll is answered empty, so that the answer still arrives; a quarter of a shorter deadline.",
	})
	pollBytes = dynamicconfig.PerQueue(dynamicconfig.Size{
		Key: "matching.maxPollBytes", Default: 2 << 20, Min: 1 << 10, Max: 32 << 20,
		Doc: "How many bytes of tasks one poll is given, the first task excepted. gRPC clients take 4 MiB unless they are told otherwise.",
	})
)

// Declared lists the settings of the server and of all that it is made of.
func Declared() []dynamicconfig.Declared {
	own := []dynamicconfig.Declared{requestBytes, pageSize, maxPageSize, unloadTimeout, longPoll, longPollMargin, pollBytes}
	own = append(own, wire.Declared()...)
	return append(own, engine.Declared()...)
}

// Settings are what may change while the handler serves; they are read at each
// call. Zero values are the defaults.
type Settings struct {
	Limits        wire.Limits   // of what a request may carry
	RequestBytes  int           // of one request
	PageSize      int           // of lists, when the request names none
	MaxPage       int           // larger pages are cut
	UnloadTimeout time.Duration // of a partition, for an operator
}

// SettingsIn returns the settings that hold.
func SettingsIn(in *dynamicconfig.Snapshot) Settings {
	return Settings{
		Limits: wire.LimitsIn(in), RequestBytes: int(requestBytes.Get(in)),
		PageSize: pageSize.Get(in), MaxPage: maxPageSize.Get(in), UnloadTimeout: unloadTimeout.Get(in),
	}
}

func (s Settings) withDefaults() Settings {
	return Settings{
		Limits:        s.Limits.WithDefaults(),
		RequestBytes:  cmp.Or(s.RequestBytes, int(requestBytes.Default())),
		PageSize:      cmp.Or(s.PageSize, pageSize.Default()),
		MaxPage:       cmp.Or(s.MaxPage, maxPageSize.Default()),
		UnloadTimeout: cmp.Or(s.UnloadTimeout, unloadTimeout.Default()),
	}
}

// PerQueue is what may be another for each task queue. Zero values are the
// defaults.
type PerQueue struct {
	PollWait   time.Duration // of polls that name no wait of their own
	PollMargin time.Duration // polls end so long before the call's deadline
	PollBytes  int           // of payloads and headers in the answer to a poll, the first task excepted
}

// PerQueueIn returns what holds for a task queue.
func PerQueueIn(in *dynamicconfig.Snapshot, q partition.Queue) PerQueue {
	return PerQueue{PollWait: longPoll.Get(in, q), PollMargin: longPollMargin.Get(in, q), PollBytes: int(pollBytes.Get(in, q))}
}

func (s PerQueue) withDefaults() PerQueue {
	return PerQueue{
		PollWait:   cmp.Or(s.PollWait, longPoll.Default()),
		PollMargin: cmp.Or(s.PollMargin, longPollMargin.Default()),
		PollBytes:  cmp.Or(s.PollBytes, int(pollBytes.Default())),
	}
}
