package queues

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// callTimeout bounds each call.
const callTimeout = 30 * time.Second

// pageSize is how many queues one call asks for.
const pageSize = 500

// Command returns `taskring queue` with its subcommands.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "queue",
		Short: "List and describe task queues",
	}
	cmd.AddCommand(listCommand(), describeCommand())
	return cmd
}

func listCommand() *cobra.Command {
	var flags remote.Flags
	var prefix string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List task queues and what rests in them",
		Example: "  taskring queue list --prefix mail",
		Args:    cobra.NoArgs,
	}
	flags.AddAddress(cmd)
	flags.AddNamespace(cmd, "namespace to list; an empty one lists all")
	flags.AddType(cmd, "")
	cmd.Flags().StringVar(&prefix, "prefix", "", "only queues whose name begins with this")
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		request := &matchingpb.ListTaskQueuesRequest{
			Namespace: flags.Namespace, NamePrefix: prefix, PageSize: pageSize, IncludeStats: true,
		}
		if flags.Type != "" {
			typ, err := partition.ParseTaskType(flags.Type)
			if err != nil {
				return exit.Usagef("--type: %w", err)
			}
			request.Type = wire.EncodeQueue(partition.Queue{Type: typ}).GetType()
		}
		c, err := flags.Dial(nil)
		if err != nil {
			return err
		}
		defer c.Stop()
		return flags.Explain(listAll(cmd, c, request, *format), "listing task queues")
	}
	return cmd
}

// listAll prints page after page.
func listAll(cmd *cobra.Command, c matchingpb.MatchingServiceClient, request *matchingpb.ListTaskQueuesRequest, format output.Format) error {
	for first := true; ; first = false {
		ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
		reply, err := c.ListTaskQueues(ctx, request)
		cancel()
		if err != nil {
			return err
		}
		if first || len(reply.GetTaskQueues()) > 0 {
			if err := printQueues(cmd.OutOrStdout(), format, reply.GetTaskQueues()); err != nil {
				return &exit.Error{Code: exit.Failure, Err: err}
			}
		}
		request.PageToken = reply.GetNextPageToken()
		if request.GetPageToken() == "" {
			return nil
		}
	}
}

func printQueues(w io.Writer, format output.Format, queues []*matchingpb.TaskQueueSummary) error {
	if format == output.JSON {
		for _, q := range queues {
			if err := output.Line(w, shownQueueOf(q)); err != nil {
				return err
			}
		}
		return nil
	}
	now := time.Now()
	rows := make([][]string, 0, len(queues))
	for _, q := range queues {
		s := q.GetStats()
		rows = append(rows, []string{
			q.GetTaskQueue().GetNamespace(), q.GetTaskQueue().GetName(), typeName(q.GetTaskQueue().GetType()),
			strconv.Itoa(int(q.GetPartitions())), output.Int(s.GetReady()), output.Int(s.GetScheduled()),
			output.Int(s.GetLeased()), output.Int(s.GetDead()), output.Ago(s.GetOldestReadyAt(), now),
		})
	}
	return output.WriteTable(w, []output.Column{
		{Title: "NAMESPACE", Cut: true}, {Title: "NAME", Cut: true}, {Title: "TYPE"}, {Title: "PARTS", Right: true},
		{Title: "READY", Right: true}, {Title: "SCHED", Right: true}, {Title: "LEASED", Right: true},
		{Title: "DEAD", Right: true}, {Title: "OLDEST", Right: true},
	}, rows)
}

// typeName returns a task type as flags and tables have it: "activity".
func typeName(t matchingpb.TaskType) string {
	return strings.ToLower(strings.TrimPrefix(t.String(), "TASK_TYPE_"))
}
