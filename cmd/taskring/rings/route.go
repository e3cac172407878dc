package rings

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/members"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/file"
	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
	"github.com/taskring/taskring/ring/route"
)

const routeLong = `Say which node owns a partition and how that follows from the names of the
nodes: the key that is hashed, the slot that the hash leads to, the list of
nodes that the slot has, and the place in that list.

How partitions are spread is said by --batch-size, or by the dynamic-config file
that the cluster runs. When the file changes it gradually, the line "change"
says when this partition follows and where it moves.`

// routing is one run of `ring route`.
type routing struct {
	queue     remote.Flags
	partition int32
	nodes     *[]string
	batchSize int32
	file      string
	at        members.Time
}

func routeCommand(registry *dynamicconfig.Registry) *cobra.Command {
	var r routing
	cmd := &cobra.Command{
		Use:   "route --queue NAME --partition N --nodes NAME,...",
		Short: "Say which node owns a partition, and why",
		Long:  routeLong,
		Example: `  taskring ring route --queue orders --partition 25 --batch-size 8 \
    --nodes node-1,node-2,node-3,node-4,node-5`,
		Args: cobra.NoArgs,
	}
	r.queue.AddNamespace(cmd, "namespace of the task queue")
	r.queue.AddType(cmd, partition.Activity.String())
	flags := cmd.Flags()
	flags.StringVar(&r.queue.Queue, "queue", "", "name of the task queue (required)")
	flags.Int32Var(&r.partition, "partition", 0, "number of the partition; 0 is the root")
	flags.Int32Var(&r.batchSize, "batch-size", 0, "partitions that are kept on different nodes; 0 places each by itself")
	flags.StringVar(&r.file, "file", "", "the dynamic-config file, which says the batch size")
	_ = cmd.MarkFlagFilename("file", "yaml", "yml")
	r.at.AddTo(cmd, "the time for which to ask, such as 2026-12-01T10:00:00Z; now when not given")
	r.nodes = members.Flag(cmd, nodesFlag)
	format := output.Flag(cmd)
	cmd.MarkFlagsMutuallyExclusive("batch-size", "file")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		shown, err := r.explain(registry, time.Now())
		if err != nil {
			return err
		}
		if *format == output.JSON {
			return output.Line(cmd.OutOrStdout(), shown)
		}
		return shown.write(cmd.OutOrStdout())
	}
	return cmd
}

func (r *routing) explain(registry *dynamicconfig.Registry, now time.Time) (shownRoute, error) {
	q, err := r.queue.TaskQueue()
	if err != nil {
		return shownRoute{}, err
	}
	if r.partition < 0 {
		return shownRoute{}, exit.Usagef("--partition %d is negative, the root is 0", r.partition)
	}
	if r.batchSize < 0 {
		return shownRoute{}, exit.Usagef("--batch-size %d is negative; 0 places each partition by itself", r.batchSize)
	}
	nodes, _, err := members.Ring(nodesFlag, *r.nodes)
	if err != nil {
		return shownRoute{}, err
	}
	sizes := route.SpreadBy(int(r.batchSize))
	if r.file != "" {
		snapshot, err := file.Load(r.file, registry)
		if err != nil {
			return shownRoute{}, err
		}
		sizes = route.BatchSizesIn(snapshot, q)
	}
	return shownRouteOf(nodes, sizes, q.Partition(r.partition), r.at.Or(now)), nil
}

// shownRoute is what route prints as JSON.
type shownRoute struct {
	Namespace string       `json:"namespace"`
	Queue     string       `json:"queue"`
	Type      string       `json:"type"`
	Partition int32        `json:"partition"`
	Owner     string       `json:"owner"` // empty: there is no node on the ring
	Key       string       `json:"key"`
	Slot      int          `json:"slot"`
	Slots     int          `json:"slots"`
	BatchSize int32        `json:"batch_size"`
	Batch     int32        `json:"batch"`
	Index     int32        `json:"index"`
	Position  int          `json:"position"`
	List      []string     `json:"list"`
	Change    *shownChange `json:"change,omitempty"`
	Warning   string       `json:"warning,omitempty"`
}

// shownChange is a gradual change of a partition's batch size as JSON.
type shownChange struct {
	OldBatchSize int32  `json:"old_batch_size"`
	NewBatchSize int32  `json:"new_batch_size"`
	Included     bool   `json:"included"`
	When         string `json:"when,omitempty"`
	Changed      bool   `json:"changed"`
	From         string `json:"from"`
	To           string `json:"to"`
}

func shownRouteOf(r *ring.Ring, sizes route.BatchSizes, p partition.ID, at time.Time) shownRoute {
	batchSize := sizes.At(p, at)
	e := route.Explain(r, p, batchSize)
	owner, _ := e.Owner()
	shown := shownRoute{
		Namespace: p.Namespace, Queue: p.Name, Type: p.Type.String(), Partition: p.Number, Owner: owner.Name,
		Key: e.Key, Slot: e.Slot, Slots: r.Format().Slots, BatchSize: e.BatchSize, Batch: e.Batch, Index: e.Index, Position: e.Position,
		List: []string{}, Change: shownChangeOf(r, sizes, p, at),
	}
	for _, n := range e.List {
		shown.List = append(shown.List, n.Name)
	}
	if route.TooWide(batchSize, r.Len()) {
		shown.Warning = fmt.Sprintf("a batch size of %d is large for %d nodes: far more moves than has to when a node comes or goes", batchSize, r.Len())
	}
	return shown
}

func shownChangeOf(r *ring.Ring, sizes route.BatchSizes, p partition.ID, at time.Time) *shownChange {
	if !sizes.Changes() {
		return nil
	}
	c := sizes.Change(p)
	from, _ := route.Owner(r, p, c.Before)
	to, _ := route.Owner(r, p, c.After)
	shown := &shownChange{
		OldBatchSize: c.Before, NewBatchSize: c.After, Included: c.Included, From: from.Name, To: to.Name,
		Changed: c.Included && !at.Before(c.When),
	}
	if !c.When.IsZero() {
		shown.When = output.Instant(c.When)
	}
	return shown
}

func (s shownRoute) write(w io.Writer) error {
	batch := "none: each partition is placed by itself"
	if s.BatchSize > 0 {
		batch = fmt.Sprintf("%d of size %d, index %d", s.Batch, s.BatchSize, s.Index)
	}
	owner, slot, list := "nobody: no node is on the ring", "", ""
	if s.Owner != "" {
		owner, slot, list = s.Owner, fmt.Sprintf("%d of %d", s.Slot, s.Slots), s.listed()
	}
	return output.WriteFields(w, [][2]string{
		{"partition", fmt.Sprintf("%s/%s (%s) #%d", s.Namespace, s.Queue, s.Type, s.Partition)},
		{"owner", owner}, {"batch", batch}, {"key", s.Key}, {"slot", slot},
		{"list", list}, {"change", s.Change.text()}, {"warning", s.Warning},
	})
}

// listed returns the list with the owner marked, and how the index wrapped.
func (s shownRoute) listed() string {
	names := make([]string, len(s.List))
	for i, name := range s.List {
		names[i] = name
		if i == s.Position {
			names[i] = "[" + name + "]"
		}
	}
	text := strings.Join(names, ", ")
	if int64(s.Index) != int64(s.Position) {
		text += fmt.Sprintf(" and from the start again: index %d is place %d", s.Index, s.Position)
	}
	return text
}

func (c *shownChange) text() string {
	if c == nil {
		return ""
	}
	where := "it stays on " + c.From
	if c.From != c.To {
		where = "from " + c.From + " to " + c.To
	}
	sizes := fmt.Sprintf("batch size %d to %d", c.OldBatchSize, c.NewBatchSize)
	switch {
	case !c.Included:
		return fmt.Sprintf("%s, not for this partition at the present percentage; later %s", sizes, where)
	case c.When == "":
		return fmt.Sprintf("%s, at the present percentage for this partition too: %s", sizes, where)
	case c.Changed:
		return fmt.Sprintf("%s, since %s: %s", sizes, c.When, where)
	default:
		return fmt.Sprintf("%s, at %s: %s", sizes, c.When, where)
	}
}
