package matching

import (
	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/file"
	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/matching/commit"
	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/server"
	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring/route"
)

// Declared lists the dynamic settings of a node, for a registry. Those of routing
// are among them: nodes and clients go by one file.
func Declared() []dynamicconfig.Declared { return append(server.Declared(), route.Declared()...) }

// DynamicConfig is the file that a node's dynamic settings come from.
type DynamicConfig struct {
	Path string // of the YAML file; empty: none, all settings have their defaults

	// StartOnDefaults lets a node start although the file is missing or wrong, with
	// all defaults. By default that is an error: a node that came up with other
	// limits than its peers would be harder to notice.
	StartOnDefaults bool

	// Registry is the settings that the file may hold; default those of Declared. A
	// process that also runs a client joins the lists of both.
	Registry *dynamicconfig.Registry
}

// Settings holds the dynamic settings in force, for those who share them: the
// client that runs in the same process.
func (n *Node) Settings() *live.Settings { return n.settings }

// openSettings makes the settings, and reads their file when there is one.
func (n *Node) openSettings() (err error) {
	cfg := &n.cfg
	if n.settings = cfg.Settings; n.settings == nil {
		n.settings = live.New(nil)
	}
	if n.registry = cfg.DynamicConfig.Registry; n.registry == nil {
		if n.registry, err = dynamicconfig.NewRegistry(Declared()...); err != nil {
			return err
		}
	}
	if cfg.DynamicConfig.Path == "" {
		return nil
	}
	n.source, err = file.Open(file.Config{
		Path: cfg.DynamicConfig.Path, StartOnDefaults: cfg.DynamicConfig.StartOnDefaults,
		Registry: n.registry, Settings: n.settings, Logger: cfg.Logger, Meter: n.metrics.meter(),
	})
	return err
}

// settingsStatus tells how the dynamic settings are doing.
func (n *Node) settingsStatus() file.Status {
	if n.source != nil {
		return n.source.Status()
	}
	return file.Status{Hash: n.settings.Snapshot().Hash()}
}

// The functions below hand each package its part of the settings in force.

func (n *Node) engineSettings() func() engine.Settings {
	cached := live.Cached(n.settings, engine.SettingsIn)
	return func() engine.Settings { return *cached() }
}

func (n *Node) commitSettings() func() commit.Settings {
	cached := live.Cached(n.settings, commit.SettingsIn)
	return func() commit.Settings { return *cached() }
}

func (n *Node) serverSettings() func() server.Settings {
	cached := live.Cached(n.settings, server.SettingsIn)
	return func() server.Settings { return *cached() }
}

// queueSettings gives a loaded partition a cache of its own, which is asked
// under the partition's lock and never waits for another one's.
func (n *Node) queueSettings(q partition.Queue) func() *queue.Settings {
	return live.Cached(n.settings, func(in *dynamicconfig.Snapshot) queue.Settings { return queue.SettingsIn(in, q) })
}

func (n *Node) enginePerQueue(q partition.Queue) engine.PerQueue {
	return engine.PerQueueIn(n.settings.Snapshot(), q)
}

func (n *Node) serverPerQueue(q partition.Queue) server.PerQueue {
	return server.PerQueueIn(n.settings.Snapshot(), q)
}
