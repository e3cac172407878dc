package tasks

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/cmd/taskring/usage"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
)

const addExample = `  taskring task add --queue mail --payload '{"to":"someone"}' --priority 1
  taskring task add --queue mail --payload-file letter.json --delay 10m
  find /usr/share -type f | taskring task add --queue files --lines`

// adding is one run of `task add`.
type adding struct {
	remote      remote.Flags
	task        taskFlags
	payload     string
	file        string
	lines       bool
	outstanding int
	format      *output.Format
}

func addCommand() *cobra.Command {
	var a adding
	cmd := &cobra.Command{
		Use:     "add --queue NAME (--payload TEXT | --payload-file FILE | --lines)",
		Short:   "Add a task, or one task for each line of standard input",
		Example: addExample,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.run(cmd) },
	}
	a.remote.AddQueue(cmd)
	a.task.add(cmd.Flags())
	usage.Words(cmd, "durability", Durabilities()...)
	a.format = output.Flag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&a.payload, "payload", "", "what the worker gets")
	flags.StringVar(&a.file, "payload-file", "", "file with what the worker gets, - for standard input")
	flags.BoolVar(&a.lines, "lines", false, "add one task for each line of standard input, without its line end")
	flags.IntVar(&a.outstanding, "outstanding", 1, "with --lines, batches under way at a time; more than 1 gives up the order of the lines")
	return cmd
}

// check says what is wrong with how the flags stand together.
func (a *adding) check(flags *pflag.FlagSet) error {
	sources := 0
	for _, name := range []string{"payload", "payload-file", "lines"} {
		if flags.Changed(name) {
			sources++
		}
	}
	switch {
	case sources == 0:
		return exit.Usagef("there is nothing to add: give --payload, --payload-file or --lines")
	case sources > 1:
		return exit.Usagef("only one of --payload, --payload-file and --lines can be given")
	case a.outstanding < 1:
		return exit.Usagef("--outstanding %d has to be at least 1", a.outstanding)
	}
	return nil
}

func (a *adding) run(cmd *cobra.Command) error {
	if err := a.check(cmd.Flags()); err != nil {
		return err
	}
	q, err := a.remote.TaskQueue()
	if err != nil {
		return err
	}
	options, err := a.task.options(cmd.Flags())
	if err != nil {
		return err
	}
	if a.lines {
		return a.runLines(cmd, q, options)
	}
	payload, err := a.read(cmd.InOrStdin())
	if err != nil {
		return err
	}
	c, err := a.remote.Dial(nil)
	if err != nil {
		return err
	}
	defer c.Stop()
	ctx, cancel := bounded(cmd.Context())
	defer cancel()
	reply, err := c.AddTask(ctx, &matchingpb.AddTaskRequest{TaskQueue: wire.EncodeQueue(q), Payload: payload, Options: options})
	if err != nil {
		return a.remote.Explain(err, "adding a task to "+q.Name)
	}
	return a.print(cmd.OutOrStdout(), reply)
}

// read returns the payload of a single task.
func (a *adding) read(stdin io.Reader) ([]byte, error) {
	var payload []byte
	var err error
	switch a.file {
	case "":
		return []byte(a.payload), nil
	case "-":
		payload, err = io.ReadAll(stdin)
	default:
		payload, err = os.ReadFile(a.file)
	}
	if err != nil {
		return nil, exit.Usagef("--payload-file: %w", err)
	}
	return payload, nil
}

// addedTask is a task that was added, as JSON.
type addedTask struct {
	ID        output.ID `json:"id"`
	Partition int32     `json:"partition"`
}

func (a *adding) print(w io.Writer, reply *matchingpb.AddTaskResponse) error {
	if *a.format == output.JSON {
		return output.Line(w, addedTask{output.ID(reply.GetId()), reply.GetPartition()})
	}
	if _, err := fmt.Fprintf(w, "added task %d in partition %d\n", reply.GetId(), reply.GetPartition()); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}
