package config

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
)

// callTimeout bounds each call to a node.
const callTimeout = 30 * time.Second

// pageSize is how many entries one call asks for.
const pageSize = 1000

// origin is where settings come from: a file, or a node.
type origin struct {
	Node         string `json:"node,omitempty"`
	Address      string `json:"address,omitempty"`
	Path         string `json:"path,omitempty"`
	LoadedAt     string `json:"loaded_at,omitempty"`
	Failing      string `json:"failing,omitempty"`
	FailingSince string `json:"failing_since,omitempty"`
}

func originOf(node *matchingpb.Holder, s *matchingpb.SettingsStatus) origin {
	return origin{
		Node: node.GetNode(), Address: node.GetAddress(), Path: s.GetPath(), LoadedAt: output.Time(s.GetLoadedAt()),
		Failing: s.GetFailing(), FailingSince: output.Time(s.GetFailingSince()),
	}
}

// fields returns the origin for people; nothing of a file.
func (o origin) fields() [][2]string {
	node := o.Node
	if node != "" {
		node += " at " + o.Address
	}
	return [][2]string{
		{"node", node}, {"file", o.Path}, {"loaded at", o.LoadedAt}, {"refused", strings.ReplaceAll(o.Failing, "\n", "; ")}, {"since", o.FailingSince},
	}
}

// showNodes prints the settings of each node that the flags name.
func showNodes(cmd *cobra.Command, flags *remote.Flags, all bool, format *output.Format) error {
	first := true
	return flags.EachNode(func(_ string, c *client.Client) error {
		shown, err := settingsOf(cmd.Context(), c, all)
		if err != nil {
			return flags.Explain(err, "asking for the settings")
		}
		if !first && !isJSON(format) {
			cmd.Println()
		}
		first = false
		return shown.write(cmd.OutOrStdout(), isJSON(format))
	})
}

// settingsOf collects the settings of a node, page after page.
func settingsOf(ctx context.Context, c matchingpb.MatchingServiceClient, all bool) (listing, error) {
	var out listing
	request := &matchingpb.GetSettingsRequest{IncludeDefaults: all, PageSize: pageSize}
	for {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		reply, err := c.GetSettings(ctx, request)
		cancel()
		if err != nil {
			return listing{}, err
		}
		out.hash, out.origin = reply.GetStatus().GetHash(), originOf(reply.GetNode(), reply.GetStatus())
		for _, e := range reply.GetEntries() {
			if e.GetIsDefault() {
				out.defaults = append(out.defaults, wire.DecodeEntry(e))
			} else {
				out.entries = append(out.entries, wire.DecodeEntry(e))
			}
		}
		request.PageToken = reply.GetNextPageToken()
		if request.GetPageToken() == "" {
			return out, nil
		}
	}
}

// explainNodes prints what each node that the flags name says of a setting.
func explainNodes(cmd *cobra.Command, flags *remote.Flags, request *matchingpb.ExplainSettingRequest, format *output.Format) error {
	first := true
	return flags.EachNode(func(_ string, c *client.Client) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), callTimeout)
		defer cancel()
		reply, err := c.ExplainSetting(ctx, request)
		if err != nil {
			return flags.Explain(err, "asking for "+request.GetKey())
		}
		if !first && !isJSON(format) {
			cmd.Println()
		}
		first = false
		return explanationOf(reply).write(cmd.OutOrStdout(), isJSON(format))
	})
}

func explanationOf(reply *matchingpb.ExplainSettingResponse) explanation {
	x := explanation{
		Explanation: dynamicconfig.Explanation{
			Key: reply.GetKey(), Value: reply.GetValue(), Default: reply.GetDefaultValue(),
			IsDefault: reply.GetIsDefault(), Gradual: reply.GetGradual(),
		},
		scope: reply.GetScope(), doc: reply.GetDescription(), leftOut: reply.GetLeftOut(),
		origin: originOf(reply.GetNode(), reply.GetStatus()),
	}
	for _, c := range reply.GetCandidates() {
		x.Candidates = append(x.Candidates, wire.DecodeCandidate(c))
	}
	return x
}
