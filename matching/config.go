package matching

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/matching/engine"
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
	Name    string // stable name of the node; default the host's name
	DataDir string // of the embedded store; default ./taskring-data
	// GRPCAddr is HOST:PORT of the service; port 0 takes a free one; default
	// 127.0.0.1:7233. Other nodes and clients are told the same host, or the host's
	// name when it is empty, 0.0.0.0 or [::].
	GRPCAddr string
	HTTPAddr string // HOST:PORT of /livez, /readyz and /metrics; default 127.0.0.1:7234

	// Store replaces the embedded store. The node closes it when it stops.
	Store engine.Store

	// DynamicConfig is the file that the dynamic settings come from.
	DynamicConfig DynamicConfig
	// Settings holds the dynamic settings, for those who publish to it by other
	// means than a file, or want to read them too. Default: the node's own.
	Settings *live.Settings

	NoReflection bool   // do not serve gRPC reflection
	Version      string // of the software, for descriptions; default none

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

func (c *Config) complete() error {
	var errs []error
	if c.CommitLanes < 0 || c.MetricSeries < 0 {
		errs = append(errs, errors.New("matching: Config has a negative number; 0 stands for the default"))
	}
	if c.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			errs = append(errs, fmt.Errorf("matching: Config.Name is missing, and so is the host's name: %w", err))
		}
		c.Name = name
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.DataDir = cmp.Or(c.DataDir, DefaultDataDir)
	c.GRPCAddr = cmp.Or(c.GRPCAddr, DefaultGRPCAddr)
	c.HTTPAddr = cmp.Or(c.HTTPAddr, DefaultHTTPAddr)
	c.MetricSeries = cmp.Or(c.MetricSeries, 20_000)
	return errors.Join(errs...)
}
