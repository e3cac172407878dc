// Package nodes is `taskring node`: looking at single nodes, past all routing.
package nodes

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/matching/matchingpb"
)

// callTimeout bounds each call.
const callTimeout = 30 * time.Second

// pageSize is how many partitions one call asks for.
const pageSize = 1000

// Command returns `taskring node` with its subcommands.
func Command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Describe nodes",
	}
	cmd.AddCommand(describeCommand())
	return cmd
}

func describeCommand() *cobra.Command {
	var flags remote.Flags
	var partitions bool
	cmd := &cobra.Command{
		Use:   "describe",
		Short: "Show what a node is, which settings it runs with and what it has loaded",
		Long: `Show each node that --address names: its name and run, version, store, the hash
of its dynamic settings, why the present file is refused if it is, and how many
partitions it has loaded.`,
		Example: "  taskring node describe --address 10.0.0.1:7233,10.0.0.2:7233",
		Args:    cobra.NoArgs,
	}
	flags.AddAddress(cmd)
	cmd.Flags().BoolVar(&partitions, "partitions", false, "also list the partitions that are loaded")
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		first := true
		return flags.EachNode(func(_ string, c *client.Client) error {
			d, err := describe(cmd.Context(), c, partitions)
			if err != nil {
				return flags.Explain(err, "describing a node")
			}
			if *format == output.JSON {
				return output.Line(cmd.OutOrStdout(), shownNodeOf(d))
			}
			return write(cmd.OutOrStdout(), d, &first)
		})
	}
	return cmd
}

// describe asks a node about itself; its partitions come page after page.
func describe(ctx context.Context, c matchingpb.MatchingServiceClient, partitions bool) (*matchingpb.DescribeNodeResponse, error) {
	request := &matchingpb.DescribeNodeRequest{IncludePartitions: partitions, PageSize: pageSize}
	var all []*matchingpb.TaskQueuePartition
	for {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		reply, err := c.DescribeNode(ctx, request)
		cancel()
		if err != nil {
			return nil, err
		}
		all = append(all, reply.GetPartitions()...)
		request.PageToken = reply.GetNextPageToken()
		if request.GetPageToken() == "" {
			reply.Partitions = all
			return reply, nil
		}
	}
}

// shownNode is a node as JSON.
type shownNode struct {
	Node             string           `json:"node"`
	RunID            string           `json:"run_id"`
	GRPCAddr         string           `json:"grpc_addr"`
	HTTPAddr         string           `json:"http_addr,omitempty"`
	Version          string           `json:"version,omitempty"`
	StartedAt        string           `json:"started_at,omitempty"`
	StoreID          string           `json:"store_id"`
	Settings         shownSettings    `json:"settings"`
	LoadedPartitions int64            `json:"loaded_partitions"`
	Partitions       []shownPartition `json:"partitions,omitempty"`
}

// shownSettings is how the dynamic settings of a node are doing.
type shownSettings struct {
	Hash         string `json:"hash"`
	Path         string `json:"path,omitempty"`
	LoadedAt     string `json:"loaded_at,omitempty"`
	Failing      string `json:"failing,omitempty"`
	FailingSince string `json:"failing_since,omitempty"`
}

// shownPartition names a partition.
type shownPartition struct {
	Namespace string `json:"namespace"`
	Queue     string `json:"queue"`
	Type      string `json:"type"`
	Partition int32  `json:"partition"`
}

func shownNodeOf(d *matchingpb.DescribeNodeResponse) shownNode {
	s := d.GetSettings()
	shown := shownNode{
		Node: d.GetNode().GetNode(), RunID: d.GetNode().GetRunId(), GRPCAddr: d.GetNode().GetAddress(), HTTPAddr: d.GetHttpAddress(),
		Version: d.GetVersion(), StartedAt: output.Time(d.GetStartedAt()), StoreID: hex.EncodeToString(d.GetStoreId()),
		Settings: shownSettings{
			Hash: s.GetHash(), Path: s.GetPath(), LoadedAt: output.Time(s.GetLoadedAt()),
			Failing: s.GetFailing(), FailingSince: output.Time(s.GetFailingSince()),
		},
		LoadedPartitions: d.GetLoadedPartitions(),
	}
	for _, p := range d.GetPartitions() {
		shown.Partitions = append(shown.Partitions, shownPartition{p.GetNamespace(), p.GetName(), typeName(p.GetType()), p.GetPartition()})
	}
	return shown
}

func write(w io.Writer, d *matchingpb.DescribeNodeResponse, first *bool) error {
	if !*first {
		if err := blank(w); err != nil {
			return err
		}
	}
	*first = false
	n := shownNodeOf(d)
	hash := n.Settings.Hash
	if hash == "" {
		hash = "none, all are at their defaults"
	}
	err := output.WriteFields(w, [][2]string{
		{"node", n.Node}, {"run", n.RunID}, {"gRPC address", n.GRPCAddr}, {"HTTP address", n.HTTPAddr},
		{"version", n.Version}, {"started at", n.StartedAt}, {"store", n.StoreID},
		{"settings", hash}, {"from", n.Settings.Path}, {"loaded at", n.Settings.LoadedAt},
		{"refused", strings.ReplaceAll(n.Settings.Failing, "\n", "; ")}, {"refused since", n.Settings.FailingSince},
		{"loaded", strconv.FormatInt(n.LoadedPartitions, 10) + " partitions"},
	})
	if err != nil || len(n.Partitions) == 0 {
		return err
	}
	if err := blank(w); err != nil {
		return err
	}
	rows := make([][]string, 0, len(n.Partitions))
	for _, p := range n.Partitions {
		rows = append(rows, []string{p.Namespace, p.Queue, p.Type, strconv.Itoa(int(p.Partition))})
	}
	return output.WriteTable(w, []output.Column{
		{Title: "NAMESPACE", Cut: true}, {Title: "NAME", Cut: true}, {Title: "TYPE"}, {Title: "PART", Right: true},
	}, rows)
}

func blank(w io.Writer) error {
	if _, err := fmt.Fprintln(w); err != nil {
		return fmt.Errorf("writing a description: %w", err)
	}
	return nil
}

// typeName returns a task type as flags and tables have it: "activity".
func typeName(t matchingpb.TaskType) string {
	return strings.ToLower(strings.TrimPrefix(t.String(), "TASK_TYPE_"))
}
