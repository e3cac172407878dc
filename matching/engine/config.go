package engine

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/taskring/taskring/matching/commit"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Settings are what may change while the engine runs; they are read at each
// use. Zero values are the defaults.
type Settings struct {
	Counts Counts // partitions of every queue; default 1 and 1

	IdleTimeout time.Duration // a partition that nobody used for so long is unloaded; default 5 min

	// Partitions that may hold tasks are loaded after a start: so many a second,
	// and so many at a time.
	PreloadRate        float64 // default 500
	PreloadConcurrency int     // default 8

	ReadAheadBytes int // of stored tasks kept in memory, all partitions together; default 256 MiB
}

// Counts is how many partitions of a queue are read from and written to.
type Counts struct{ Read, Write int32 }

func (s Settings) withDefaults() Settings {
	s.Counts.Write = max(s.Counts.Write, 1)
	s.Counts.Read = max(s.Counts.Read, s.Counts.Write)
	s.IdleTimeout = cmp.Or(s.IdleTimeout, 5*time.Minute)
	s.PreloadRate = cmp.Or(s.PreloadRate, 500)
	s.PreloadConcurrency = cmp.Or(s.PreloadConcurrency, 8)
	s.ReadAheadBytes = cmp.Or(s.ReadAheadBytes, 256<<20)
	return s
}

// Store is what the engine needs of a store: the partitions and the list of them.
type Store interface {
	store.Store
	store.Catalogue
}

// Config is what an engine is made of. Store is required; zero values of the
// others are the defaults.
type Config struct {
	Store  Store       // of partitions and catalogue; closed by its owner, after Stop
	Holder task.Holder // this run of the node

	Commit commit.Config // lanes, deadline and retries; the rest is filled in

	Settings func() Settings // the snapshot in force; default all defaults
	// QueueSettings returns the snapshot in force for a queue. It is called often:
	// the same pointer means that nothing changed.
	QueueSettings func(q partition.Queue) *queue.Settings

	LoadTimeout   time.Duration // of loading one partition, or unloading an idle one; default 10 s
	MaxPartitions int           // that are loaded at a time; default 100,000

	Logger *slog.Logger // of what fails without a caller to tell; default none
	Meter  metric.Meter // of loads, unloads and the store's share; default none
}

func (c *Config) complete() error {
	if c.Store == nil {
		return errors.New("engine: Config.Store is missing")
	}
	if c.LoadTimeout < 0 || c.MaxPartitions < 0 {
		return errors.New("engine: Config has a negative number or duration; 0 stands for the default")
	}
	c.LoadTimeout = cmp.Or(c.LoadTimeout, 10*time.Second)
	c.MaxPartitions = cmp.Or(c.MaxPartitions, 100_000)
	if c.Settings == nil {
		c.Settings = func() Settings { return Settings{} }
	}
	if c.QueueSettings == nil {
		c.QueueSettings = func(partition.Queue) *queue.Settings { return nil }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Meter == nil {
		c.Meter = noop.NewMeterProvider().Meter("")
	}
	c.Commit.Store, c.Commit.Holder, c.Commit.Logger, c.Commit.Meter = c.Store, c.Holder, c.Logger, c.Meter
	return nil
}
