package tasks

import (
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/cmd/taskring/usage"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// pageSize is how many tasks one call asks for at most.
const pageSize = 100

// peeking is one run of `task peek`.
type peeking struct {
	remote remote.Flags
	states []string
	limit  int
	format *output.Format
}

func peekCommand() *cobra.Command {
	var p peeking
	cmd := &cobra.Command{
		Use:     "peek --queue NAME",
		Short:   "Show the first tasks of a queue without taking them",
		Example: "  taskring task peek --queue mail --state scheduled --limit 5",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return p.run(cmd) },
	}
	p.remote.AddQueue(cmd)
	p.format = output.Flag(cmd)
	cmd.Flags().StringSliceVar(&p.states, "state", nil, "ready, scheduled, leased or dead, several with commas; all but dead when not given")
	usage.Words(cmd, "state", stateNames()...)
	cmd.Flags().IntVar(&p.limit, "limit", 20, "tasks to show at most; 0 shows all")
	return cmd
}

func (p *peeking) run(cmd *cobra.Command) error {
	q, err := p.remote.TaskQueue()
	if err != nil {
		return err
	}
	states, err := parseStates(p.states)
	if err != nil {
		return err
	}
	if p.limit < 0 {
		return exit.Usagef("--limit %d is negative; 0 shows all", p.limit)
	}
	c, err := p.remote.Dial(nil)
	if err != nil {
		return err
	}
	defer c.Stop()
	return p.pages(cmd, c, q, states)
}

// pages prints page after page, so that a long queue takes no memory here.
func (p *peeking) pages(cmd *cobra.Command, c matchingpb.MatchingServiceClient, q partition.Queue, states []matchingpb.TaskState) error {
	request := &matchingpb.PeekTasksRequest{TaskQueue: wire.EncodeQueue(q), States: states, IncludePayload: true}
	left := p.limit
	for first := true; ; first = false {
		request.PageSize = pageSize
		if p.limit > 0 {
			request.PageSize = int32(min(left, pageSize))
		}
		ctx, cancel := bounded(cmd.Context())
		reply, err := c.PeekTasks(ctx, request)
		cancel()
		if err != nil {
			return p.remote.Explain(err, "looking into "+q.Name)
		}
		tasks := reply.GetTasks()
		if p.limit > 0 {
			tasks = tasks[:min(left, len(tasks))]
			left -= len(tasks)
		}
		if err := printTasks(cmd.OutOrStdout(), *p.format, tasks, first); err != nil {
			return err
		}
		request.PageToken = reply.GetNextPageToken()
		if request.GetPageToken() == "" || p.limit > 0 && left == 0 {
			return nil
		}
	}
}

// Titles of the columns that are printed when they say something.
const (
	titleDue    = "DUE IN"
	titleReason = "REASON"
)

func taskColumns() []output.Column {
	return []output.Column{
		{Title: "ID", Right: true}, {Title: "PART", Right: true}, {Title: "STATE"}, {Title: "PRIO", Right: true},
		{Title: "TRIES", Right: true}, {Title: "AGE", Right: true}, {Title: titleDue, Right: true},
		{Title: titleReason, Cut: true}, {Title: "PAYLOAD", Cut: true},
	}
}

// present leaves out the columns that say something of no task of the page:
// when scheduled ones are due, and why dead ones died.
func present(columns []output.Column, rows [][]string) ([]output.Column, [][]string) {
	for i, column := range slices.Backward(columns) {
		optional := column.Title == titleDue || column.Title == titleReason
		if !optional || slices.ContainsFunc(rows, func(row []string) bool { return row[i] != "" }) {
			continue
		}
		columns = slices.Delete(columns, i, i+1)
		for j := range rows {
			rows[j] = slices.Delete(rows[j], i, i+1)
		}
	}
	return columns, rows
}

// dueIn is when a scheduled task is due, and for others nothing.
func dueIn(t *matchingpb.TaskDescription, now time.Time) string {
	if t.GetState() != matchingpb.TaskState_TASK_STATE_SCHEDULED {
		return ""
	}
	return output.Until(t.GetDueAt(), now)
}

// printTasks prints a page. A table shows its titles even when there is no task
// at all, but not for an empty page behind others.
func printTasks(w io.Writer, format output.Format, tasks []*matchingpb.TaskDescription, first bool) error {
	if format == output.JSON {
		for _, t := range tasks {
			if err := output.Line(w, shownTaskOf(t)); err != nil {
				return err
			}
		}
		return nil
	}
	if len(tasks) == 0 && !first {
		return nil
	}
	now := time.Now()
	rows := make([][]string, 0, len(tasks))
	for _, t := range tasks {
		rows = append(rows, []string{
			output.ID(t.GetId()).String(), strconv.Itoa(int(t.GetPartition().GetPartition())), stateName(t.GetState()),
			strconv.Itoa(int(t.GetOptions().GetPriority())), strconv.FormatUint(uint64(t.GetAttempts()), 10),
			output.Ago(t.GetAddedAt(), now), dueIn(t, now), output.Text([]byte(t.GetDeadReason())), output.Text(t.GetPayload()),
		})
	}
	columns, rows := present(taskColumns(), rows)
	return output.WriteTable(w, columns, rows)
}

// stateName returns a state as flags and tables have it: "ready".
func stateName(s matchingpb.TaskState) string {
	return strings.ToLower(strings.TrimPrefix(s.String(), "TASK_STATE_"))
}

// stateNames returns the values of --state.
func stateNames() []string { return []string{"ready", "scheduled", "leased", "dead"} }

func parseStates(names []string) ([]matchingpb.TaskState, error) {
	var states []matchingpb.TaskState
	for _, name := range names {
		value, ok := matchingpb.TaskState_value["TASK_STATE_"+strings.ToUpper(name)]
		if !ok || value == 0 {
			return nil, exit.Usagef("--state %q is not one of %s", name, strings.Join(stateNames(), ", "))
		}
		states = append(states, matchingpb.TaskState(value))
	}
	return states, nil
}
