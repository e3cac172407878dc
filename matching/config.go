package matching

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/taskring/taskring/matching/commit"
	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/server"
)

// The defaults of a Config.
const (
	DefaultDataDir  = "./taskring-data"
	DefaultGRPCAddr = "127.0.0.1:7233"
	DefaultHTTPAddr = "127.0.0.1:7234"

	// DefaultStopTimeout is what a node that is told to stop should be given.
	DefaultStopTimeout = 10 * time.Second
)

// Config is the static configuration of a node: what cannot change while it
// runs. Zero values are the defaults.
type Config struct {
	Name     string // stable name of the node; default the host's name
	DataDir  string // of the embedded store; default ./taskring-data
	GRPCAddr string // HOST:PORT of the service; port 0 takes a free one; default 127.0.0.1:7233
	HTTPAddr string // HOST:PORT of /livez, /readyz and /metrics; default 127.0.0.1:7234

	// Store replaces the embedded store. The node closes it when it stops.
	Store engine.Store

	// Settings returns the snapshot of settings in force. It is called often: the
	// same pointer means that nothing changed. Default: all defaults.
	Settings func() *Settings

	NoReflection bool // do not serve gRPC reflection
	RequestBytes int  // of one request; default 8 MiB

	// CommitDeadline is how long a commit may take before the node takes no more
	// adds and is not ready; default 10 s.
	CommitDeadline time.Duration
	// CommitLanes is the number of commits in flight; default 1, which is best for
	// one disk.
	CommitLanes int

	// MetricSeries bounds the series of one instrument; what exceeds it is counted
	// under otel_metric_overflow. Default 20,000.
	MetricSeries int

	// Logger takes the node's log; default none.
	Logger *slog.Logger
	// OnStoreBroken is told why the process is about to end because the store
	// cannot go on; see the store's package for the exit status.
	OnStoreBroken func(reason string)
}

// Settings are the dynamic settings of a node, one struct per package. Zero
// values are the defaults.
type Settings struct {
	Server server.Settings // limits of requests, waits of polls, pages
	Engine engine.Settings // partition counts, idle time, loading, read-ahead
	Queue  queue.Settings  // of every queue: order of polls, limits, leases, retries
}

func (c *Config) complete() error {
	var errs []error
	if c.RequestBytes < 0 || c.CommitDeadline < 0 || c.CommitLanes < 0 || c.MetricSeries < 0 {
		errs = append(errs, errors.New("matching: Config has a negative number or duration; 0 stands for the default"))
	}
	if c.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			errs = append(errs, fmt.Errorf("matching: Config.Name is missing, and so is the host's name: %w", err))
		}
		c.Name = name
	}
	if c.Settings == nil {
		var defaults Settings
		c.Settings = func() *Settings { return &defaults }
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.DataDir = cmp.Or(c.DataDir, DefaultDataDir)
	c.GRPCAddr = cmp.Or(c.GRPCAddr, DefaultGRPCAddr)
	c.HTTPAddr = cmp.Or(c.HTTPAddr, DefaultHTTPAddr)
	c.CommitDeadline = cmp.Or(c.CommitDeadline, 10*time.Second)
	c.MetricSeries = cmp.Or(c.MetricSeries, 20_000)
	return errors.Join(errs...)
}

func (c *Config) lanes() commit.Config {
	return commit.Config{Lanes: c.CommitLanes, Deadline: c.CommitDeadline}
}
