package config

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/partition"
)

// shownExplanation is what explain prints as JSON.
type shownExplanation struct {
	origin

	Key       string           `json:"key"`
	Value     string           `json:"value"`
	Default   string           `json:"default"`
	IsDefault bool             `json:"is_default"`
	Gradual   string           `json:"gradual,omitempty"`
	Scope     string           `json:"scope"`
	Doc       string           `json:"doc"`
	Entries   []shownCandidate `json:"entries"`
	LeftOut   int64            `json:"left_out,omitempty"`
}

// explanation is which value a setting has somewhere, and why.
type explanation struct {
	dynamicconfig.Explanation

	origin     origin
	scope, doc string
	leftOut    int64 // candidates that a node did not send
}

// shownCandidate is an entry that might have won, as JSON.
type shownCandidate struct {
	shownEntry

	Holds bool   `json:"holds"`
	Wins  bool   `json:"wins"`
	Why   string `json:"why"`
}

// place is for what a value is asked for.
type place struct{ namespace, queue, taskType string }

func explainCommand(registry *dynamicconfig.Registry) *cobra.Command {
	var at place
	var remotes remote.Flags
	cmd := &cobra.Command{
		Use:   "explain KEY",
		Short: "Say which value a setting has, which entry gave it, and why",
		Long: `Say which value a dynamic setting has at a node, or would have under a file when
--file names one, for a namespace or a task queue; which entry gave it, and why
others did not.`,
		Example: `  taskring config explain matching.maxLeases --queue orders
  taskring config explain matching.numTaskqueueWritePartitions \
    --file settings.yaml --namespace shop --queue orders --type activity`,
		Args: cobra.ExactArgs(1),
	}
	path := fileFlag(cmd, "a dynamic-config file to look at in place of a node")
	remotes.AddAddress(cmd)
	flags := cmd.Flags()
	flags.StringVar(&at.namespace, "namespace", "", "for this namespace; not given: for one that no entry names")
	flags.StringVar(&at.queue, "queue", "", "for this task queue; not given: for one that no entry names")
	flags.StringVar(&at.taskType, "type", "", "workflow, activity or dispatch; not given: for none that an entry names")
	format := output.Flag(cmd)
	cmd.ValidArgsFunction = completeKeys(registry)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *path == "" {
			request, err := at.request(args[0])
			if err != nil {
				return err
			}
			return explainNodes(cmd, &remotes, request, format)
		}
		def, err := registry.Find(args[0])
		if err != nil {
			return exit.Usagef("%w", err)
		}
		q, err := at.of(def.About())
		if err != nil {
			return err
		}
		snapshot, err := load(*path, registry)
		if err != nil {
			return err
		}
		about := def.About()
		x := explanation{Explanation: snapshot.Explain(def, q, time.Now()), scope: about.Scope.String(), doc: about.Doc}
		return x.write(cmd.OutOrStdout(), isJSON(format))
	}
	return cmd
}

func completeKeys(registry *dynamicconfig.Registry) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		settings := registry.Settings()
		keys := make([]string, 0, len(settings))
		for _, def := range settings {
			keys = append(keys, def.About().Key)
		}
		return keys, cobra.ShellCompDirectiveNoFileComp
	}
}

// of returns the queue that the flags name, and refuses flags that say nothing
// about the setting. A gradual one changes queue by queue, even when it is global.
func (p place) of(about dynamicconfig.Description) (partition.Queue, error) {
	q := partition.Queue{Namespace: p.namespace, Name: p.queue}
	switch {
	case about.Scope < dynamicconfig.ScopeQueue && (p.queue != "" || p.taskType != "") && !about.Gradual:
		return q, exit.Usagef("%s has one value for each %s: --queue and --type say nothing about it", about.Key, about.Scope)
	case p.taskType != "":
		typ, err := partition.ParseTaskType(p.taskType)
		if err != nil {
			return q, exit.Usagef("--type: %w", err)
		}
		q.Type = typ
	}
	return q, nil
}

// request asks a node about a setting at the place. The node knows its settings
// best, also those of another version than this one.
func (p place) request(key string) (*matchingpb.ExplainSettingRequest, error) {
	request := &matchingpb.ExplainSettingRequest{Key: key, Namespace: p.namespace, TaskQueueName: p.queue}
	if p.taskType != "" {
		typ, err := partition.ParseTaskType(p.taskType)
		if err != nil {
			return nil, exit.Usagef("--type: %w", err)
		}
		request.TaskType = matchingpb.TaskType(typ)
	}
	return request, nil
}

func (x explanation) write(w io.Writer, asJSON bool) error {
	if asJSON {
		shown := shownExplanation{
			origin: x.origin, Key: x.Key, Value: x.Value, Default: x.Default, IsDefault: x.IsDefault, Gradual: x.Gradual,
			Scope: x.scope, Doc: x.doc, Entries: []shownCandidate{}, LeftOut: x.leftOut,
		}
		for _, c := range x.Candidates {
			shown.Entries = append(shown.Entries, shownCandidate{shownEntryOf(c.Entry), c.Holds, c.Wins, c.Why})
		}
		return output.Line(w, shown)
	}
	from := "the default, no entry holds"
	for _, c := range x.Candidates {
		if c.Wins {
			from = fmt.Sprintf("%v: %s", c.Entry.Constraints, c.Why)
			if c.Entry.Line > 0 {
				from = fmt.Sprintf("line %d, %s", c.Entry.Line, from)
			}
		}
	}
	fields := slices.Concat([][2]string{
		{"key", x.Key}, {"value", x.Value}, {"from", from}, {"gradual", x.Gradual}, {"default", x.Default},
		{"scope", x.scope}, {"about", x.doc},
	}, x.origin.fields())
	if err := output.WriteFields(w, fields); err != nil || len(x.Candidates) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return wrapWriting(err)
	}
	columns := []output.Column{{Title: "LINE", Right: true}, {Title: "VALUE"}, {Title: "CONSTRAINTS"}, {Title: "WHY"}}
	var rows [][]string
	for _, c := range x.Candidates {
		rows = append(rows, []string{strconv.Itoa(c.Entry.Line), c.Entry.Value, c.Entry.Constraints.String(), c.Why})
	}
	if x.leftOut > 0 {
		rows = append(rows, []string{"", "", "", fmt.Sprintf("and %d more, which do not hold or are wider", x.leftOut)})
	}
	return output.WriteTable(w, columns, rows)
}
