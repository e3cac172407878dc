package work

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/interrupt"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/partition"
)

const workLong = `Run a command for each task of a queue.

The payload is the command's standard input and replaces every {} in its
arguments; no shell is involved. Exit code 0 completes the task, any other fails
it with the end of standard error as the reason. The command's environment has
TASKRING_TASK_ID, TASKRING_TASK_ATTEMPT and TASKRING_TASK_DELIVERY.

Without a command each payload is printed as a line.

SIGINT and SIGTERM: takes no more tasks and finishes those that run. A second
signal kills them.`

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
		Use:     "work --queue NAME [-- CMD ARG...]",
		Short:   "Run a command for each task of a queue",
		Long:    workLong,
		Example: workExample,
		RunE:    w.run,
	}
	w.remote.AddQueue(cmd)
	flags := cmd.Flags()
	flags.IntVar(&w.concurrency, "concurrency", 1, "tasks to work on at a time")
	flags.Int64Var(&w.maxTasks, "max-tasks", 0, "end after this many tasks; 0 is never")
	flags.DurationVar(&w.idleExit, "idle-exit", 0, "end when for so long the queue had nothing ready, due or in flight; 0 is never")
	flags.DurationVar(&w.lease, "lease", 0, "lease to ask for, 1s to 12h; it is extended while a task runs; 0 is the task's own")
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
	logger := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	c, err := w.remote.Dial(logger)
	if err != nil {
		return err
	}
	defer c.Stop()

	ctx, enough := context.WithCancel(cmd.Context())
	defer enough()
	r := newRunner(args, cmd.OutOrStdout(), cmd.ErrOrStderr())
	interrupt.AtOnce(ctx, r.killAll)
	worker, err := client.NewWorker(c, client.WorkerOptions{
		Queue: q, Concurrency: w.concurrency, Identity: remote.Identity(), LeaseDuration: w.lease, Logger: logger,
		DrainTimeout: unbounded,
		Handler:      func(task context.Context, t *client.Task) error { return w.handle(task, t, r, enough) },
	})
	if err != nil {
		return exit.Usagef("%w", err)
	}
	if w.idleExit > 0 {
		watched := make(chan struct{})
		defer func() { enough(); <-watched }()
		go func() {
			defer close(watched)
			w.watchIdle(ctx, c, q, enough)
		}()
	}
	err = worker.Run(ctx)
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "%s completed, %d failed\n", count(w.completed.Load()), w.failed.Load())
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

// watchIdle calls enough once the queue has been idle for long enough.
func (w *working) watchIdle(ctx context.Context, c *client.Client, q partition.Queue, enough func()) {
	decision := idle{limit: w.idleExit}
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
		if decision.observe(time.Now(), seen) {
			enough()
			return
		}
	}
}

// count says how many tasks n is.
func count(n int64) string {
	if n == 1 {
		return "1 task"
	}
	return strconv.FormatInt(n, 10) + " tasks"
}
