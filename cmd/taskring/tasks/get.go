package tasks

import (
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

func getCommand() *cobra.Command {
	var flags remote.Flags
	var part int32
	cmd := &cobra.Command{
		Use:     "get ID --queue NAME [--partition N]",
		Short:   "Show a task and its payload",
		Example: "  taskring task get 1099511627777 --queue mail",
		Args:    cobra.ExactArgs(1),
	}
	flags.AddQueue(cmd)
	cmd.Flags().Int32Var(&part, "partition", 0, "partition of the task; without it every partition is asked")
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		q, err := flags.TaskQueue()
		if err != nil {
			return err
		}
		id, err := task.ParseID(args[0])
		if err != nil {
			return exit.Usagef("%w", err)
		}
		c, err := flags.Dial(nil)
		if err != nil {
			return err
		}
		defer c.Stop()
		where := wire.EncodeQueue(q)
		if cmd.Flags().Changed("partition") {
			where.Partition = &part
		}
		ctx, cancel := bounded(cmd.Context())
		defer cancel()
		reply, err := c.GetTask(ctx, &matchingpb.GetTaskRequest{TaskQueue: where, Id: uint64(id)})
		if err != nil {
			return flags.Explain(err, "getting task "+args[0]+" of "+q.Name)
		}
		return printTask(cmd.OutOrStdout(), *format, reply.GetTask())
	}
	return cmd
}

func printTask(w io.Writer, format output.Format, t *matchingpb.TaskDescription) error {
	if format == output.JSON {
		return output.Line(w, shownTaskOf(t))
	}
	now := time.Now()
	pairs := [][2]string{
		{"id", output.ID(t.GetId()).String()},
		{"partition", strconv.Itoa(int(t.GetPartition().GetPartition()))},
		{"state", stateName(t.GetState())},
		{"priority", strconv.Itoa(int(t.GetOptions().GetPriority()))},
		{"added", output.Time(t.GetAddedAt()) + " (" + output.Ago(t.GetAddedAt(), now) + " ago)"},
		{"durability", durabilityName(t.GetOptions().GetDurability())},
		{"due", due(t, now)},
		{"expires", output.Time(t.GetExpiresAt())},
		{"attempts", strconv.FormatUint(uint64(t.GetAttempts()), 10)},
		{"max attempts", maxAttempts(t.GetOptions().GetMaxAttempts())},
		{"deliveries", strconv.FormatUint(uint64(t.GetDeliveries()), 10)},
		{"lease", leaseOf(t)},
		{"worker", t.GetLease().GetIdentity()},
		{"lease left", output.Span(t.GetLease().GetRemaining())},
		{"last failure", output.Text([]byte(t.GetLastFailure()))},
		{"dead since", output.Time(t.GetDeadAt())},
		{"dead because", t.GetDeadReason()},
	}
	for _, name := range sortedKeys(t.GetOptions().GetHeaders()) {
		pairs = append(pairs, [2]string{"header " + name, t.GetOptions().GetHeaders()[name]})
	}
	pairs = append(pairs, [2]string{"payload", output.Text(t.GetPayload())})
	return output.WriteFields(w, pairs)
}

// nodesSetting stands where a task goes by what the node is set to.
const nodesSetting = "the node's setting"

func maxAttempts(n int32) string {
	if n == 0 {
		return nodesSetting
	}
	return strconv.Itoa(int(n))
}

// leaseOf is how long a worker of the task has without a sign of life: that of
// its worker, if it has one, else its own.
func leaseOf(t *matchingpb.TaskDescription) string {
	for _, d := range []*durationpb.Duration{t.GetLease().GetLeaseDuration(), t.GetOptions().GetLeaseDuration()} {
		if d.AsDuration() > 0 {
			return d.AsDuration().String()
		}
	}
	return nodesSetting
}

// due is when the task is due and, while it waits for that, in what time.
func due(t *matchingpb.TaskDescription, now time.Time) string {
	at := output.Time(t.GetDueAt())
	switch in := dueIn(t, now); in {
	case "":
		return at
	case output.Now:
		return at + " (now)"
	default:
		return at + " (in " + in + ")"
	}
}
