package bench

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/cmd/taskring/tasks"
	"github.com/taskring/taskring/cmd/taskring/usage"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/partition"
)

// The modes.
const (
	flow    = "flow"
	backlog = "backlog"
	latency = "latency"
)

// Defaults that depend on the mode.
const (
	defaultTasks        = 100_000
	defaultLatencyTasks = 2_000
	defaultLatencyRate  = 200
)

// plan is what one run is asked to do.
type plan struct {
	mode        string
	tasks       int
	payload     int // bytes
	producers   int
	workers     int
	outstanding int
	rate        float64 // adds a second over all producers; 0 is as fast as it goes
	durability  matchingpb.Durability
	queue       partition.Queue
}

// flags are the flags of `bench`.
type flags struct {
	plan
	remote     remote.Flags
	durability string
	format     *output.Format
}

const benchLong = `Measure a node as an application uses it. Without --address a server of its own
runs on a temporary directory, below $TMPDIR, whose disk is what is measured.

flow     workers wait while producers add
backlog  all tasks are added first, then workers drain them
latency  flow at a fixed rate

Every task id is checked: a run that loses a task or hands one out twice fails.
A line of the table and a field of the JSON have the same name.`

const benchExample = `  taskring bench --mode flow --tasks 100000 --producers 16 --workers 16
  taskring bench --mode latency --rate 200 --tasks 2000 -o json`

// Command returns `taskring bench`.
func Command() *cobra.Command { return newCommand(&flags{}) }

func newCommand(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "bench",
		Short:   "Measure how fast tasks are added, handed out and completed",
		Long:    benchLong,
		Example: benchExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	set := cmd.Flags()
	set.StringVar(&f.mode, "mode", flow, "flow, backlog or latency")
	set.IntVar(&f.tasks, "tasks", defaultTasks, fmt.Sprintf("tasks to add; with --mode latency %d when not given", defaultLatencyTasks))
	set.IntVar(&f.payload, "payload", 256, "bytes of a payload")
	set.IntVar(&f.producers, "producers", 16, "producers")
	set.IntVar(&f.workers, "workers", 16, "workers")
	set.IntVar(&f.outstanding, "outstanding", 1, "adds in flight a producer, and tasks at a time a worker")
	set.Float64Var(&f.rate, "rate", 0, fmt.Sprintf("adds a second over all producers; 0 is as fast as it goes (with --mode latency %d)", defaultLatencyRate))
	set.StringVar(&f.durability, "durability", "durable", "durable or hand-off")
	set.StringSliceVar(&f.remote.Addresses, "address", nil, "HOST:PORT of nodes to measure instead of a server of its own")
	f.format = output.Flag(cmd)
	usage.Words(cmd, "mode", modes()...)
	usage.Words(cmd, "durability", tasks.Durabilities()...)
	return cmd
}

func modes() []string { return []string{flow, backlog, latency} }

// complete fills in defaults and says what is wrong. given reports whether a flag
// was typed.
func (f *flags) complete(given func(flag string) bool) error {
	if !slices.Contains(modes(), f.mode) {
		return exit.Usagef("--mode %q is not one of %s", f.mode, strings.Join(modes(), ", "))
	}
	if f.mode == latency && f.rate == 0 {
		f.rate = defaultLatencyRate
	}
	if f.mode == latency && !given("tasks") {
		f.tasks = defaultLatencyTasks
	}
	if given("address") && len(f.remote.Addresses) == 0 {
		return exit.Usagef("--address is empty; it has to be HOST:PORT, or not be given")
	}
	for name, value := range map[string]int{
		"tasks": f.tasks, "producers": f.producers, "workers": f.workers, "outstanding": f.outstanding,
	} {
		if value < 1 {
			return exit.Usagef("--%s %d has to be at least 1", name, value)
		}
	}
	if f.payload < numberSize {
		return exit.Usagef("--payload %d has to be at least %d: a payload holds its task's number", f.payload, numberSize)
	}
	if f.rate < 0 {
		return exit.Usagef("--rate %v may not be negative", f.rate)
	}
	var err error
	f.plan.durability, err = tasks.ParseDurability(f.durability)
	// A queue of its own leaves others alone on nodes that are shared.
	f.queue = partition.Queue{Namespace: remote.DefaultNamespace, Name: "bench-" + rand.Text(), Type: partition.Activity}
	return err
}

func (f *flags) run(cmd *cobra.Command) error {
	if err := f.complete(cmd.Flags().Changed); err != nil {
		return err
	}
	result, err := f.measure(cmd.Context(), cmd.ErrOrStderr())
	if result != nil {
		err = errors.Join(err, result.print(cmd.OutOrStdout(), *f.format))
	}
	return err
}

// measure runs the plan against the nodes that were named, or a server of its own.
func (f *flags) measure(ctx context.Context, stderr io.Writer) (result *figures, err error) {
	var server *ownServer
	if len(f.remote.Addresses) == 0 {
		if server, err = startOwn(ctx, stderr); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, server.stop()) }()
		f.remote.Addresses = []string{server.GRPCAddr}
	}
	r := &run{plan: f.plan, remote: &f.remote, server: server}
	if output.IsTerminal(stderr) {
		defer r.showProgress(stderr)()
	}
	return r.measure(ctx)
}
