package queues

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
)

func describeCommand() *cobra.Command {
	var flags remote.Flags
	cmd := &cobra.Command{
		Use:     "describe --queue NAME",
		Short:   "Show what rests in a task queue, who polls it and its partitions",
		Example: "  taskring queue describe --queue mail",
		Args:    cobra.NoArgs,
	}
	flags.AddQueue(cmd)
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		reply, err := describe(cmd, &flags)
		if err != nil {
			return err
		}
		if *format == output.JSON {
			return output.Line(cmd.OutOrStdout(), shownDescriptionOf(reply))
		}
		return printDescription(cmd.OutOrStdout(), reply)
	}
	return cmd
}

// describe asks for all that is known of the queue that the flags name.
func describe(cmd *cobra.Command, flags *remote.Flags) (*matchingpb.DescribeTaskQueueResponse, error) {
	q, err := flags.TaskQueue()
	if err != nil {
		return nil, err
	}
	c, err := flags.Dial(nil)
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
	defer cancel()
	reply, err := c.DescribeTaskQueue(ctx, &matchingpb.DescribeTaskQueueRequest{
		TaskQueue: wire.EncodeQueue(q), IncludePartitions: true, IncludePollers: true,
	})
	return reply, flags.Explain(err, "describing "+q.Name)
}

func printDescription(w io.Writer, d *matchingpb.DescribeTaskQueueResponse) error {
	q := d.GetTaskQueue()
	head := [][2]string{
		{"queue", q.GetNamespace() + "/" + q.GetName() + " (" + typeName(q.GetType()) + ")"},
		{"partitions", countsLine(d.GetCounts())},
	}
	pairs := slices.Concat(head, statsPairs(d.GetStats()))
	for _, m := range d.GetMissing() {
		pairs = append(pairs, [2]string{fmt.Sprintf("no answer from %d", m.GetIndex()), m.GetMessage()})
	}
	if err := output.WriteFields(w, pairs); err != nil {
		return err
	}
	if err := printPartitions(w, d.GetPartitions(), true); err != nil {
		return err
	}
	return printPollers(w, d.GetPollers())
}

// countsLine says how many partitions a queue has.
func countsLine(c *matchingpb.PartitionCounts) string {
	return fmt.Sprintf("read from %d, written to %d", c.GetRead(), c.GetWrite())
}

func statsPairs(s *matchingpb.QueueStats) [][2]string {
	oldest := ""
	if s.GetOldestReadyAt() != nil {
		oldest = ", the oldest for " + output.Ago(s.GetOldestReadyAt(), time.Now())
	}
	next := ""
	if s.GetNextDueAt() != nil {
		next = ", the next due in " + output.Until(s.GetNextDueAt(), time.Now())
	}
	pairs := [][2]string{
		{"ready", output.Int(s.GetReady()) + oldest},
		{"scheduled", output.Int(s.GetScheduled()) + next},
		{"leased", output.Int(s.GetLeased())},
		{"dead", output.Int(s.GetDead())},
		{"added/s", output.Rate(s.GetAddRate())},
		{"handed out/s", output.Rate(s.GetDispatchRate())},
		{"waiting polls", output.Int(s.GetWaitingPolls())},
	}
	if s.GetRateLimited() {
		pairs = append(pairs, [2]string{"rate limit", "held back tasks within the last 30 s"})
	}
	if s.GetEstimated() {
		pairs = append(pairs, [2]string{"note", "the counts are estimates"})
	}
	return pairs
}

// printPartitions prints a table; apart says that something stands above it.
func printPartitions(w io.Writer, partitions []*matchingpb.PartitionDescription, apart bool) error {
	if apart && len(partitions) == 0 {
		return nil
	}
	if err := blank(w, apart); err != nil {
		return err
	}
	rows := make([][]string, 0, len(partitions))
	for _, p := range partitions {
		s := p.GetStats()
		rows = append(rows, []string{
			strconv.Itoa(int(p.GetPartition())), yes(p.GetLoaded()), strconv.FormatUint(p.GetEpoch(), 10),
			output.Int(s.GetReady()), output.Int(s.GetScheduled()), output.Int(s.GetLeased()), output.Int(s.GetDead()),
			output.Int(s.GetWaitingPolls()), p.GetHolder().GetNode(), p.GetHolder().GetAddress(),
		})
	}
	return output.WriteTable(w, []output.Column{
		{Title: "PART", Right: true}, {Title: "LOADED"}, {Title: "EPOCH", Right: true},
		{Title: "READY", Right: true}, {Title: "SCHED", Right: true}, {Title: "LEASED", Right: true},
		{Title: "DEAD", Right: true}, {Title: "POLLS", Right: true}, {Title: "NODE", Cut: true}, {Title: "ADDRESS", Cut: true},
	}, rows)
}

func printPollers(w io.Writer, pollers []*matchingpb.Poller) error {
	if len(pollers) == 0 {
		return nil
	}
	if err := blank(w, true); err != nil {
		return err
	}
	now := time.Now()
	rows := make([][]string, 0, len(pollers))
	for _, p := range pollers {
		rows = append(rows, []string{p.GetIdentity(), strconv.Itoa(int(p.GetOpenPolls())), output.Ago(p.GetLastSeenAt(), now)})
	}
	return output.WriteTable(w, []output.Column{
		{Title: "WORKER", Cut: true}, {Title: "POLLS", Right: true}, {Title: "SEEN AGO", Right: true},
	}, rows)
}

func blank(w io.Writer, wanted bool) error {
	if !wanted {
		return nil
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return fmt.Errorf("writing a description: %w", err)
	}
	return nil
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
