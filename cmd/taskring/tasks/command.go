package tasks

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// Command returns `taskring task` with its subcommands.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "task",
		Short: "Add tasks and look at them",
	}
	cmd.AddCommand(addCommand(), getCommand(), peekCommand())
	return cmd
}

// callTimeout bounds each call that does not wait for anything but the node.
const callTimeout = 30 * time.Second

func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, callTimeout)
}
