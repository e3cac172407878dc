package queues

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// PartitionCommand returns `taskring partition` with its subcommands.
func PartitionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "partition",
		Short: "List and describe the partitions of a task queue",
	}
	cmd.AddCommand(partitionListCommand(), partitionDescribeCommand())
	return cmd
}

func partitionListCommand() *cobra.Command {
	var flags remote.Flags
	cmd := &cobra.Command{
		Use:     "list --queue NAME",
		Short:   "List the partitions of a task queue and their holders",
		Example: "  taskring partition list --queue mail",
		Args:    cobra.NoArgs,
	}
	flags.AddQueue(cmd)
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		reply, err := describe(cmd, &flags)
		if err != nil {
			return err
		}
		if *format == output.Table {
			return printPartitions(cmd.OutOrStdout(), reply.GetPartitions(), false)
		}
		for _, p := range reply.GetPartitions() {
			if err := output.Line(cmd.OutOrStdout(), shownPartitionOf(p)); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

func partitionDescribeCommand() *cobra.Command {
	var flags remote.Flags
	cmd := &cobra.Command{
		Use:     "describe NUMBER --queue NAME",
		Short:   "Show one partition of a task queue",
		Example: "  taskring partition describe 0 --queue mail",
		Args:    cobra.ExactArgs(1),
	}
	flags.AddQueue(cmd)
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := flags.TaskQueue()
		if err != nil {
			return err
		}
		number, err := strconv.ParseInt(args[0], 10, 32)
		if err != nil || number < 0 {
			return exit.Usagef("partition %q is not a number from 0 (the root) on", args[0])
		}
		reply, err := describePartition(cmd, &flags, q.Partition(int32(number)))
		if err != nil {
			return err
		}
		if *format == output.JSON {
			return output.Line(cmd.OutOrStdout(), shownPartitionOf(reply.GetPartition()))
		}
		return printPartition(cmd.OutOrStdout(), reply.GetPartition())
	}
	return cmd
}

func describePartition(cmd *cobra.Command, flags *remote.Flags, p partition.ID) (*matchingpb.DescribePartitionResponse, error) {
	c, err := flags.Dial(nil)
	if err != nil {
		return nil, err
	}
	defer c.Stop()
	ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
	defer cancel()
	reply, err := c.DescribePartition(ctx, &matchingpb.DescribePartitionRequest{TaskQueue: wire.EncodePartition(p)})
	return reply, flags.Explain(err, fmt.Sprintf("describing partition %d of %s", p.Number, p.Name))
}

func printPartition(w io.Writer, p *matchingpb.PartitionDescription) error {
	pairs := [][2]string{
		{"partition", strconv.Itoa(int(p.GetPartition()))},
		{"loaded", yes(p.GetLoaded())},
		{"node", p.GetHolder().GetNode()},
		{"address", p.GetHolder().GetAddress()},
		{"epoch", strconv.FormatUint(p.GetEpoch(), 10)},
		{"last id", output.ID(p.GetLastId()).String()},
		{"drained", yes(p.GetDrained())},
	}
	if err := output.WriteFields(w, slices.Concat(pairs, statsPairs(p.GetStats()))); err != nil {
		return err
	}
	return printPollers(w, p.GetPollers())
}
