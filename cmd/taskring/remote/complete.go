package remote

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/env"
	"github.com/taskring/taskring/matching/matchingpb"
)

// Completing may take so long and show so many queues: someone waits for it at
// a shell.
const (
	completeFor = 2 * time.Second
	completed   = 100
)

// completeQueue has the shell complete --queue with the queues that there are.
// Without a node it completes nothing.
func (f *Flags) completeQueue(cmd *cobra.Command) {
	_ = cmd.RegisterFlagCompletionFunc("queue", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return f.queues(cmd, typed), cobra.ShellCompDirectiveNoFileComp
	})
}

func (f *Flags) queues(cmd *cobra.Command, prefix string) []string {
	if env.Apply(cmd) != nil { // not applied by itself: the command does not run
		return nil
	}
	c, err := f.Dial(nil)
	if err != nil {
		return nil
	}
	defer c.Stop()
	ctx, cancel := context.WithTimeout(cmd.Context(), completeFor)
	defer cancel()
	reply, err := c.ListTaskQueues(ctx, &matchingpb.ListTaskQueuesRequest{
		Namespace: f.Namespace, NamePrefix: prefix, PageSize: completed,
	})
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(reply.GetTaskQueues()))
	for _, q := range reply.GetTaskQueues() {
		names = append(names, q.GetTaskQueue().GetName())
	}
	return names
}
