package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/bench"
	"github.com/taskring/taskring/cmd/taskring/env"
	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/interrupt"
	"github.com/taskring/taskring/cmd/taskring/queues"
	"github.com/taskring/taskring/cmd/taskring/serve"
	"github.com/taskring/taskring/cmd/taskring/tasks"
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
		SilenceErrors:     true,
		SilenceUsage:      true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return env.Apply(cmd) },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exit.Usagef("%w\n%s", err, seeHelp(cmd))
	})
	cmd.AddCommand(
		serve.Command(),
		tasks.Command(),
		work.Command(),
		queues.Command(),
		queues.PartitionCommand(),
		bench.Command(),
		versionCommand(),
		exitCodesTopic(),
	)
	usageErrors(cmd)
	return cmd
}

// exitCodesTopic is the help topic of the exit codes.
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "The exit codes and what they mean", Long: exit.Help()}
}

func seeHelp(cmd *cobra.Command) string { return "see `" + cmd.CommandPath() + " --help`" }

// usageErrors makes wrong arguments of all commands below cmd errors of usage,
// and a command that only groups others refuse a word it does not know.
func usageErrors(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil && cmd.HasSubCommands() {
		check = cobra.NoArgs
	}
	if check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return exit.Usagef("%w\n%s", err, seeHelp(cmd))
			}
			return nil
		}
	}
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	for _, below := range cmd.Commands() {
		usageErrors(below)
	}
}
