package config

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/members"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
	"github.com/taskring/taskring/ring/route"
)

const previewLong = `Say what a dynamic-config file that changes matching.spreadRoutingBatchSize
gradually makes of the partitions of some task queues: which ones move, from
which node to which, and when. The partitions of a queue are those that the file
has it read from; --partitions says otherwise.

First a line for each queue, then one for each partition that moves; with -o
json only the latter. BY NOW and STATE are for the time of --at.`

// membersFlag is the name of the flag that gives the nodes.
const membersFlag = "members"

// previewing is one run of `config preview`.
type previewing struct {
	flags      remote.Flags
	queues     []string
	partitions int32
	members    *[]string
	at         members.Time
}

func previewCommand(registry *dynamicconfig.Registry) *cobra.Command {
	var p previewing
	cmd := &cobra.Command{
		Use:   "preview FILE --queues NAME,... --members NODE,...",
		Short: "Say which partitions a gradual change of routing moves, and when",
		Long:  previewLong,
		Example: `  taskring config preview settings.yaml --queues orders,mail \
    --members node-1,node-2,node-3 --at 2026-12-01T10:30:00Z`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringSliceVar(&p.queues, "queues", nil, "names of task queues, with commas or by repeating the flag (required)")
	cmd.Flags().Int32Var(&p.partitions, "partitions", 0, "partitions of each queue; 0: as many as the file has them read from")
	p.flags.AddNamespace(cmd, "namespace of the task queues")
	p.flags.AddType(cmd, partition.Activity.String())
	p.members = members.Flag(cmd, membersFlag)
	p.at.AddTo(cmd, "the time for which to ask, such as 2026-12-01T10:00:00Z; now when not given")
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		snapshot, err := load(args[0], registry)
		if err != nil {
			return err
		}
		seen, err := p.look(snapshot, time.Now())
		if err != nil {
			return err
		}
		if isJSON(format) {
			return seen.writeJSON(cmd.OutOrStdout())
		}
		return seen.write(cmd.OutOrStdout())
	}
	return cmd
}

// preview is what a file makes of some queues.
type preview struct {
	queues   []queueMoves
	warnings []string
}

// queueMoves is what moves of one queue, by time.
type queueMoves struct {
	queue      partition.Queue
	partitions int32
	changes    bool // the file changes its routing gradually
	moves      []move
}

// move is a partition that goes from one node to another.
type move struct {
	partition int32
	from, to  string
	when      time.Time // zero: a percentage decides, the partition has moved
	moved     bool
}

func (p *previewing) look(in *dynamicconfig.Snapshot, now time.Time) (preview, error) {
	queues, err := p.named()
	if err != nil {
		return preview{}, err
	}
	r, _, err := members.Ring(membersFlag, *p.members)
	if err != nil {
		return preview{}, err
	}
	var out preview
	for _, q := range queues {
		sizes, n := route.BatchSizesIn(in, q), p.partitions
		if n == 0 {
			n = wire.CountsIn(in, q).Read
		}
		m := queueMoves{queue: q, partitions: n, changes: sizes.Changes()}
		if m.changes {
			m.moves = movesOf(r, q, sizes, n)
			m.settle(p.at.Or(now))
			out.warn(sizes.Change(q.Partition(0)).After, r.Len())
		}
		out.queues = append(out.queues, m)
	}
	return out, nil
}

// named returns the queues that the flags name.
func (p *previewing) named() ([]partition.Queue, error) {
	if len(p.queues) == 0 {
		return nil, exit.Usagef("no task queue is named; say which with --queues NAME,...")
	}
	if p.partitions < 0 {
		return nil, exit.Usagef("--partitions %d is negative; 0 is as many as the file says", p.partitions)
	}
	queues := make([]partition.Queue, 0, len(p.queues))
	for _, name := range p.queues {
		flags := p.flags
		flags.Queue = strings.TrimSpace(name)
		q, err := flags.TaskQueue()
		if err != nil {
			return nil, err
		}
		queues = append(queues, q)
	}
	return queues, nil
}

// movesOf returns the partitions that the change puts on another node. Those that a
// percentage leaves out stay where they are.
func movesOf(r *ring.Ring, q partition.Queue, sizes route.BatchSizes, n int32) []move {
	var moves []move
	for number := range n {
		id := q.Partition(number)
		c := sizes.Change(id)
		from, _ := route.Owner(r, id, c.Before)
		to, _ := route.Owner(r, id, c.After)
		if c.Included && from.Name != to.Name {
			moves = append(moves, move{partition: number, from: from.Name, to: to.Name, when: c.When})
		}
	}
	slices.SortStableFunc(moves, func(a, b move) int { return a.when.Compare(b.when) })
	return moves
}

// settle marks what has moved at a time.
func (m *queueMoves) settle(at time.Time) {
	for i := range m.moves {
		m.moves[i].moved = !at.Before(m.moves[i].when)
	}
}

// movedBy returns how many have moved, and the instants of the first and the last
// move; empty when no time decides.
func (m *queueMoves) movedBy() (n int, first, last string) {
	for _, one := range m.moves {
		if one.moved {
			n++
		}
	}
	if len(m.moves) > 0 && !m.moves[0].when.IsZero() {
		first, last = output.Instant(m.moves[0].when), output.Instant(m.moves[len(m.moves)-1].when)
	}
	return n, first, last
}

func (p *preview) warn(batchSize int32, nodes int) {
	text := fmt.Sprintf("a batch size of %d is large for %s: far more moves than has to when a node comes or goes",
		batchSize, count(nodes, "node", "nodes"))
	if route.TooWide(batchSize, nodes) && !slices.Contains(p.warnings, text) {
		p.warnings = append(p.warnings, text)
	}
}

// shownMove is a move as JSON.
type shownMove struct {
	Namespace string `json:"namespace"`
	Queue     string `json:"queue"`
	Type      string `json:"type"`
	Partition int32  `json:"partition"`
	From      string `json:"from"`
	To        string `json:"to"`
	When      string `json:"when,omitempty"`
	Moved     bool   `json:"moved"`
}

func (p *preview) writeJSON(w io.Writer) error {
	for _, q := range p.queues {
		for _, m := range q.moves {
			shown := shownMove{
				Namespace: q.queue.Namespace, Queue: q.queue.Name, Type: q.queue.Type.String(),
				Partition: m.partition, From: m.from, To: m.to, Moved: m.moved,
			}
			if !m.when.IsZero() {
				shown.When = output.Instant(m.when)
			}
			if err := output.Line(w, shown); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *preview) write(w io.Writer) error {
	queues := make([][]string, 0, len(p.queues))
	var moves [][]string
	for _, q := range p.queues {
		moved, first, last := q.movedBy()
		note := cmp.Or(last, "-")
		if !q.changes {
			note = "no gradual change"
		}
		queues = append(queues, []string{
			q.queue.Name, strconv.Itoa(int(q.partitions)), strconv.Itoa(len(q.moves)), strconv.Itoa(moved), cmp.Or(first, "-"), note,
		})
		for _, m := range q.moves {
			moves = append(moves, m.row(q.queue.Name))
		}
	}
	err := output.WriteTable(w, []output.Column{
		{Title: "QUEUE", Cut: true}, {Title: "PARTS", Right: true}, {Title: "MOVE", Right: true}, {Title: "BY NOW", Right: true},
		{Title: "FIRST"}, {Title: "LAST"},
	}, queues)
	if err != nil {
		return err
	}
	if err := p.writeMoves(w, moves); err != nil {
		return err
	}
	for _, text := range p.warnings {
		if _, err := fmt.Fprintln(w, "\nwarning: "+text); err != nil {
			return wrapWriting(err)
		}
	}
	return nil
}

func (m move) row(queue string) []string {
	when, state := "-", "to come"
	if !m.when.IsZero() {
		when = output.Instant(m.when)
	}
	if m.moved {
		state = "moved"
	}
	return []string{when, queue, strconv.Itoa(int(m.partition)), m.from, m.to, state}
}

// writeMoves writes the moves of all queues by time.
func (p *preview) writeMoves(w io.Writer, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	slices.SortStableFunc(rows, func(a, b []string) int { return cmp.Compare(a[0], b[0]) })
	if _, err := fmt.Fprintln(w); err != nil {
		return wrapWriting(err)
	}
	return output.WriteTable(w, []output.Column{
		{Title: "WHEN"}, {Title: "QUEUE", Cut: true}, {Title: "PART", Right: true}, {Title: "FROM", Cut: true}, {Title: "TO", Cut: true}, {Title: "STATE"},
	}, rows)
}
