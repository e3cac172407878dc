package rings

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/members"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/ring"
)

// nodesFlag is the name of the flag that gives the nodes.
const nodesFlag = "nodes"

// Command returns `taskring ring` with its subcommands. registry holds the settings
// of the dynamic-config files that they read.
func Command(registry *dynamicconfig.Registry) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ring",
		Short: "See how partitions are placed on nodes",
		Long: `Every node, frontend and client computes from the names of the nodes alone which
node owns a partition. These commands compute the same; they ask no node.`,
	}
	cmd.AddCommand(showCommand(), membersCommand(), routeCommand(registry))
	return cmd
}

// shownRing is what show prints as JSON.
type shownRing struct {
	Format      string   `json:"format"`
	Fingerprint string   `json:"fingerprint"`
	Nodes       int      `json:"nodes"`
	Points      int      `json:"points"`
	Slots       int      `json:"slots"`
	Draining    []string `json:"draining"`
	Crowded     bool     `json:"crowded"`
}

func showCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show --nodes NAME,...",
		Short: "Print the format of the ring and the fingerprint of the view",
		Long: `Print the format of the ring, which all processes of a cluster must have in
common, and the fingerprint of these nodes and weights: two processes that
report the same one give every partition to the same node.`,
		Example: "  taskring ring show --nodes 10.0.0.1:7233,10.0.0.2:7233,10.0.0.3:7233",
		Args:    cobra.NoArgs,
	}
	list := members.Flag(cmd, nodesFlag)
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, nodes, err := members.Ring(nodesFlag, *list)
		if err != nil {
			return err
		}
		return writeRing(cmd.OutOrStdout(), shownRingOf(r, nodes), *format == output.JSON)
	}
	return cmd
}

func shownRingOf(r *ring.Ring, nodes []ring.Node) shownRing {
	shown := shownRing{
		Format: r.Format().Fingerprint(), Fingerprint: fmt.Sprintf("%016x", r.Fingerprint()), Nodes: r.Len(), Slots: r.Format().Slots,
		Draining: []string{}, Crowded: r.Crowded(),
	}
	for _, n := range nodes {
		shown.Points += n.Weight
		if n.Weight == 0 {
			shown.Draining = append(shown.Draining, n.Name)
		}
	}
	return shown
}

func writeRing(w io.Writer, shown shownRing, asJSON bool) error {
	if asJSON {
		return output.Line(w, shown)
	}
	crowded := ""
	if shown.Crowded {
		crowded = fmt.Sprintf("%d slots for %d points are few: shares become uneven, and more moves than has to", shown.Slots, shown.Points)
	}
	draining := ""
	if n := len(shown.Draining); n > 0 {
		draining = strconv.Itoa(n) + " more, not on the ring"
	}
	return output.WriteFields(w, [][2]string{
		{"format", shown.Format}, {"view", shown.Fingerprint},
		{"nodes", strconv.Itoa(shown.Nodes)}, {"draining", draining}, {"points", strconv.Itoa(shown.Points)}, {"warning", crowded},
	})
}

// shownMember is what members prints as JSON, a line for each node.
type shownMember struct {
	Name   string  `json:"name"`
	Weight int     `json:"weight"`
	Slots  int     `json:"slots"`
	Share  float64 `json:"share"`
	Fair   float64 `json:"fair"`
}

func membersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "members --nodes NAME,...",
		Short: "Print how much each node gets",
		Long: `Print how many slots of the ring each node owns. SHARE is what that is of all
keys, FAIR what its weight entitles it to.`,
		Example: "  taskring ring members --nodes large=2,small-1,small-2,leaving=0",
		Args:    cobra.NoArgs,
	}
	list := members.Flag(cmd, nodesFlag)
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		r, nodes, err := members.Ring(nodesFlag, *list)
		if err != nil {
			return err
		}
		return writeMembers(cmd.OutOrStdout(), shownMembersOf(r, nodes), *format == output.JSON)
	}
	return cmd
}

// shownMembersOf returns the nodes in the order in which they were named.
func shownMembersOf(r *ring.Ring, nodes []ring.Node) []shownMember {
	owned, points := map[string]int{}, 0
	for i, n := range r.Owned() {
		owned[r.Nodes()[i].Name] = n
	}
	for _, n := range nodes {
		points += n.Weight
	}
	shown := make([]shownMember, len(nodes))
	for i, n := range nodes {
		shown[i] = shownMember{Name: n.Name, Weight: n.Weight, Slots: owned[n.Name]}
		if n.Weight > 0 {
			shown[i].Share = float64(owned[n.Name]) / float64(r.Format().Slots)
			shown[i].Fair = float64(n.Weight) / float64(points)
		}
	}
	return shown
}

func writeMembers(w io.Writer, shown []shownMember, asJSON bool) error {
	var rows [][]string
	for _, m := range shown {
		if asJSON {
			if err := output.Line(w, m); err != nil {
				return err
			}
			continue
		}
		rows = append(rows, []string{m.Name, strconv.Itoa(m.Weight), strconv.Itoa(m.Slots), percent(m.Share), percent(m.Fair)})
	}
	if asJSON {
		return nil
	}
	return output.WriteTable(w, []output.Column{
		{Title: "NODE", Cut: true}, {Title: "WEIGHT", Right: true}, {Title: "SLOTS", Right: true},
		{Title: "SHARE", Right: true}, {Title: "FAIR", Right: true},
	}, rows)
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }
