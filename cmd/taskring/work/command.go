package work

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/interrupt"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

const workLong = `Run a command for each task of a queue.

The payload is the command's standard input and replaces every {} in its
arguments; no shell is involved. Exit code 0 completes the task, any other fails
it with the end of standard error as the reason. The command's environment has
TASKRING_TASK_ID, TASKRING_TASK_ATTEMPT and TASKRING_TASK_DELIVERY.

A failed task is tried again later, after 1s at first and 10m at last, and
becomes a dead letter after 25 attempts; both are settings of the node, and a
task may have its own --max-attempts. For each failure a line on standard error
says which task, why, and what follows. Failed tasks do not change the exit code
of the worker.

Without a command each payload is printed as a line.

--idle-exit counts while a node answers and no task is ready, at a worker, or
scheduled to be due within that time.

SIGINT and SIGTERM: takes no more tasks and finishes those that run. A second
signal kills them; they come again when their leases end.`

const workExample = `  taskring work --queue files --concurrency 4 --idle-exit 3s -- sha256sum {}
  taskring work --queue mail -- sh -c 'sendmail -t'`

// working is one run of `work`.
type working struct {
	remote      remote.Flags
	concurrency int
	maxTasks    int64
	idleExit    time.Duration
	lease       time.Duration

	started   atomic.Int64 // tasks that were begun
	completed atomic.Int64
	failed    atomic.Int64
}

// unbounded is how long tasks may run on after a signal: until they are done.
const unbounded = 1000 * time.Hour

// Command returns `taskring work`.
func Command() *cobra.Command {
	var w working
	cmd := &cobra.Command{
		Use:     "work --queue NAME [flags] [-- CMD ARG...]",
		Short:   "Run a command for each task of a queue",
		Long:    workLong,
		Example: workExample,
		RunE:    w.run,
	}
	w.remote.AddQueue(cmd)
	flags := cmd.Flags()
	flags.IntVar(&w.concurrency, "concurrency", 1, "tasks to work on at a time")
	flags.Int64Var(&w.maxTasks, "max-tasks", 0, "end after this many tasks; 0 is never")
	flags.DurationVar(&w.idleExit, "idle-exit", 0, "end when for so long the queue had nothing ready, in flight, or due within that time; 0 is never")
	flags.DurationVar(&w.lease, "lease", 0, "lease to ask for, 1s to 12h; it is extended while a task runs; 0 is the task's own, 30s by default")
	return cmd
}

func (w *working) check(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0 && cmd.ArgsLenAtDash() != 0:
		return exit.Usagef("the command stands behind --, as in: taskring work --queue NAME -- %s", args[0])
	case w.concurrency < 1:
		return exit.Usagef("--concurrency %d has to be at least 1", w.concurrency)
	case w.maxTasks < 0:
		return exit.Usagef("--max-tasks %d is negative; 0 is no limit", w.maxTasks)
	case w.idleExit < 0 || w.lease < 0:
		return exit.Usagef("--idle-exit and --lease may not be negative")
	}
	if len(args) > 0 {
		if _, err := exec.LookPath(args[0]); err != nil {
			return exit.Usagef("the command cannot be run: %w", err)
		}
	}
	return nil
}

func (w *working) run(cmd *cobra.Command, args []string) error {
	q, err := w.remote.TaskQueue()
	if err != nil {
		return err
	}
	if err := w.check(cmd, args); err != nil {
		return err
	}
	logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	c, err := w.remote.Dial(logger)
	if err != nil {
		return err
	}
	defer c.Stop()

	ctx, enough := context.WithCancel(cmd.Context())
	defer enough()
	r := newRunner(args, cmd.OutOrStdout(), cmd.ErrOrStderr())
	diagnostics := cmd.ErrOrStderr()
	interrupt.AtOnce(ctx, func() { sayKilled(diagnostics, r.killAll()) })
	worker, err := client.NewWorker(c, client.WorkerOptions{
		Queue: q, Concurrency: w.concurrency, Identity: remote.Identity(), LeaseDuration: w.lease, Logger: logger,
		DrainTimeout: unbounded,
		OnFailure:    func(t *client.Task, f client.Failure) { _ = r.stderr.writeWhole(failureLine(t, f, time.Now())) },
		Handler:      func(ctx context.Context, t *client.Task) error { return w.handle(ctx, t, r, enough) },
	})
	if err != nil {
		return exit.Usagef("%w", err)
	}
	if w.idleExit > 0 {
		watched := make(chan struct{})
		defer func() { enough(); <-watched }()
		go func() {
			defer close(watched)
			w.watchIdle(ctx, c, q, func(line string) { _ = r.stderr.writeWhole([]byte(line + "\n")) })
			enough()
		}()
	}
	err = worker.Run(ctx)
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s completed, %d failed\n", output.Count(w.completed.Load(), "task"), w.failed.Load())
	if err != nil && !errors.Is(err, context.Canceled) {
		return w.remote.Explain(err, "working on "+q.Name)
	}
	return nil
}

// handle works on one task within the bound of --max-tasks: the last task that
// it allows ends the taking of further ones, and what was taken beyond goes back.
func (w *working) handle(ctx context.Context, t *client.Task, r *runner, enough func()) error {
	n := w.started.Add(1)
	if w.maxTasks > 0 && n >= w.maxTasks {
		enough()
		if n > w.maxTasks {
			return client.ErrRelease
		}
	}
	err := r.handle(ctx, t)
	if err == nil {
		w.completed.Add(1)
	} else {
		w.failed.Add(1)
	}
	return err
}

// watchIdle returns once the queue has been idle for long enough. It says what the
// worker waits for, when that is nothing that it works on itself, and in the end
// what is left for later.
func (w *working) watchIdle(ctx context.Context, c *client.Client, q partition.Queue, say func(line string)) {
	decision := idle{limit: w.idleExit}
	said := false
	ticker := time.NewTicker(min(max(w.idleExit/5, 20*time.Millisecond), time.Second))
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		asking, cancel := context.WithTimeout(ctx, max(w.idleExit, time.Second))
		reply, err := remote.Describe(asking, c, q)
		cancel()
		seen := sightOf(reply, err)
		seen.begun, seen.ended = w.started.Load(), w.completed.Load()+w.failed.Load()
		now := time.Now()
		if decision.observe(now, seen) {
			if left := seen.leaves(now); left != "" {
				say(left)
			}
			return
		}
		if reason := decision.waitsFor(now, seen); reason != "" && !said {
			said = true
			say("waiting for " + reason)
		}
	}
}

// failureLine says what became of a failed task.
func failureLine(t *client.Task, f client.Failure, now time.Time) []byte {
	follows := "it is a dead letter now"
	if !f.Dead {
		follows = "tried again in " + output.Round(max(0, f.Next.Sub(now))).String()
	}
	return fmt.Appendf(nil, "task %s failed, attempt %d: %s; %s\n", t.ID, t.Attempt, shortReason(f.Err), follows)
}

// sayKilled says which tasks a second signal broke off.
func sayKilled(w io.Writer, killed []task.ID) {
	if len(killed) == 0 {
		return
	}
	names := make([]string, len(killed))
	for i, id := range killed {
		names[i] = id.String()
	}
	_, _ = fmt.Fprintf(w, "killed %s: %s; they come again when their leases end\n",
		output.Count(int64(len(killed)), "task"), strings.Join(names, ", ")) // the process ends
}
