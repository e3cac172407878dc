package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/bench"
	"github.com/taskring/taskring/cmd/taskring/config"
	"github.com/taskring/taskring/cmd/taskring/dynamic"
	"github.com/taskring/taskring/cmd/taskring/env"
	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/frontend"
	"github.com/taskring/taskring/cmd/taskring/interrupt"
	"github.com/taskring/taskring/cmd/taskring/nodes"
	"github.com/taskring/taskring/cmd/taskring/queues"
	"github.com/taskring/taskring/cmd/taskring/rings"
	"github.com/taskring/taskring/cmd/taskring/serve"
	"github.com/taskring/taskring/cmd/taskring/tasks"
	"github.com/taskring/taskring/cmd/taskring/usage"
	"github.com/taskring/taskring/cmd/taskring/work"
)

func main() {
	ctx, stop := interrupt.Watch(context.Background(), int(exit.Interrupted))
	code := run(ctx, root(), os.Stderr)
	stop()
	os.Exit(int(code))
}

// run carries out a command and says on stderr what went wrong.
func run(ctx context.Context, cmd *cobra.Command, stderr io.Writer) exit.Code {
	err := cmd.ExecuteContext(ctx)
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "taskring:", err) // nobody is left to tell that this cannot be told
	}
	return exit.Of(err)
}

// root returns the command with all its subcommands.
func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "taskring",
		Short: "A durable task queue: add tasks, work on them, look at them",
		Long: `Taskring hands tasks from producers to workers and keeps them until they are
done.

  taskring server                                  runs a node
  taskring task add --queue mail --payload hello   adds a task
  taskring work --queue mail                       works on it`,
		Version:           thisBuild().Version, // for --version
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return env.Apply(cmd) },
	}
	cmd.SetVersionTemplate(thisBuild().line())
	cmd.SetFlagErrorFunc(usage.Flag)
	cmd.AddCommand(
		serve.Command(thisBuild().Version),
		frontend.Command(),
		tasks.Command(),
		work.Command(),
		queues.Command(),
		queues.PartitionCommand(),
		nodes.Command(),
		rings.Command(dynamic.Registry()),
		config.Command(dynamic.Registry()),
		bench.Command(),
		versionCommand(),
		exitCodesTopic(),
	)
	usage.Args(cmd)
	return cmd
}

// exitCodesTopic is the help topic of the exit codes.
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "The exit codes and what they mean", Long: exit.Help()}
}
