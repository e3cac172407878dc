package engine

import (
	"errors"
	"log/slog"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/taskring/taskring/matching/commit"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

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

	Commit commit.Config // lanes and their settings; the rest is filled in

	Settings func() Settings                  // in force; default all defaults
	PerQueue func(q partition.Queue) PerQueue // in force for a queue; default all defaults
	// QueueSettings returns how a partition that is loaded asks for the settings of
	// its queue. What it returns is called often: the same pointer means that nothing
	// changed, nil all defaults.
	QueueSettings func(q partition.Queue) func() *queue.Settings
	// Version returns another value (!=) once any setting changed.
	Version func() any

	Logger *slog.Logger // of what fails without a caller to tell; default none
	Meter  metric.Meter // of loads, unloads and the store's share; default none
}

func (c *Config) complete() error {
	if c.Store == nil {
		return errors.New("engine: Config.Store is missing")
	}
	if c.Settings == nil {
		c.Settings = func() Settings { return Settings{} }
	}
	if c.QueueSettings == nil {
		c.QueueSettings = func(partition.Queue) func() *queue.Settings { return func() *queue.Settings { return nil } }
	}
	if c.PerQueue == nil {
		c.PerQueue = func(partition.Queue) PerQueue { return PerQueue{} }
	}
	if c.Version == nil {
		c.Version = func() any { return nil }
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
