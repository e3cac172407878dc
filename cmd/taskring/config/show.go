package config

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/dynamicconfig"
)

// shownSettings is what show prints as JSON.
type shownSettings struct {
	origin

	Hash    string       `json:"hash"`
	Entries []shownEntry `json:"entries"`
}

// shownEntry is an entry as JSON; one that comes from no file has line 0.
type shownEntry struct {
	Key         string           `json:"key"`
	Value       string           `json:"value"`
	Constraints shownConstraints `json:"constraints"`
	Line        int              `json:"line,omitempty"`
	IsDefault   bool             `json:"is_default,omitempty"`
}

// shownConstraints are constraints as JSON.
type shownConstraints struct {
	Namespace     string `json:"namespace,omitempty"`
	TaskQueueName string `json:"task_queue_name,omitempty"`
	TaskType      string `json:"task_type,omitempty"`
}

// shownDifference is a line of diff as JSON.
type shownDifference struct {
	Key         string           `json:"key"`
	Constraints shownConstraints `json:"constraints"`
	Change      string           `json:"change"`
	Old         string           `json:"old"`
	New         string           `json:"new"`
}

func shownConstraintsOf(c dynamicconfig.Constraints) shownConstraints {
	shown := shownConstraints{Namespace: c.Namespace, TaskQueueName: c.TaskQueueName}
	if c.TaskType != 0 {
		shown.TaskType = c.TaskType.String()
	}
	return shown
}

func shownEntryOf(e dynamicconfig.Entry) shownEntry {
	return shownEntry{e.Key, e.Value, shownConstraintsOf(e.Constraints), e.Line, false}
}

// listing is what holds somewhere.
type listing struct {
	origin   origin
	hash     string
	entries  []dynamicconfig.Entry
	defaults []dynamicconfig.Entry // of settings for which no entry holds everywhere
}

func showCommand(registry *dynamicconfig.Registry) *cobra.Command {
	var all bool
	var flags remote.Flags
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the settings in force at a node, or those of a file, and their hash",
		Long: `Print the dynamic settings that a node runs with and their hash, or the entries
of a file when --file names one. Nodes that run the same file report the same
hash, also as the metric dynamic_config_info.`,
		Example: `  taskring config show --address 10.0.0.1:7233,10.0.0.2:7233
  taskring config show --file settings.yaml --all`,
		Args: cobra.NoArgs,
	}
	flags.AddAddress(cmd)
	path := fileFlag(cmd, "a dynamic-config file to look at in place of a node")
	cmd.Flags().BoolVar(&all, "all", false, "also settings that are at their defaults")
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *path == "" {
			return showNodes(cmd, &flags, all, format)
		}
		snapshot, err := load(*path, registry)
		if err != nil {
			return err
		}
		shown := listing{hash: snapshot.Hash(), entries: snapshot.Entries()}
		if all {
			shown.defaults = defaultsBeside(shown.entries, registry)
		}
		return shown.write(cmd.OutOrStdout(), isJSON(format))
	}
	return cmd
}

// defaultsBeside returns the defaults of settings for which there is no entry
// that holds everywhere.
func defaultsBeside(entries []dynamicconfig.Entry, registry *dynamicconfig.Registry) []dynamicconfig.Entry {
	everywhere := map[string]bool{}
	for _, e := range entries {
		if (e.Constraints == dynamicconfig.Constraints{}) {
			everywhere[e.Key] = true
		}
	}
	var defaults []dynamicconfig.Entry
	for _, def := range registry.Settings() {
		if about := def.About(); !everywhere[about.Key] {
			defaults = append(defaults, dynamicconfig.Entry{Key: about.Key, Value: about.Default})
		}
	}
	return defaults
}

func (s listing) write(w io.Writer, asJSON bool) error {
	if asJSON {
		shown := shownSettings{origin: s.origin, Hash: s.hash, Entries: []shownEntry{}}
		for _, e := range s.entries {
			shown.Entries = append(shown.Entries, shownEntryOf(e))
		}
		for _, e := range s.defaults {
			entry := shownEntryOf(e)
			entry.IsDefault = true
			shown.Entries = append(shown.Entries, entry)
		}
		return output.Line(w, shown)
	}
	hash := s.hash
	if hash == "" {
		hash = "none, all settings are at their defaults"
	}
	if err := output.WriteFields(w, append([][2]string{{"hash", hash}}, s.origin.fields()...)); err != nil || len(s.entries)+len(s.defaults) == 0 {
		return err
	}
	if _, err := fmt.Fprintln(w); err != nil {
		return wrapWriting(err)
	}
	columns := []output.Column{{Title: "KEY"}, {Title: "VALUE"}, {Title: "CONSTRAINTS"}}
	var rows [][]string
	for _, e := range s.entries {
		rows = append(rows, []string{e.Key, e.Value, e.Constraints.String()})
	}
	for _, e := range s.defaults {
		rows = append(rows, []string{e.Key, e.Value, "(default)"})
	}
	return output.WriteTable(w, columns, rows)
}

func diffCommand(registry *dynamicconfig.Registry) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say what a change from one file to another would change",
		Long: `Compare two dynamic-config files by what they mean: spelling, order and comments
make no difference. OLD and NEW of a line are what holds where its constraints
are met and nothing narrower holds.`,
		Example: "  taskring config diff now.yaml next.yaml",
		Args:    cobra.ExactArgs(2),
	}
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		before, err := load(args[0], registry)
		if err != nil {
			return err
		}
		after, err := load(args[1], registry)
		if err != nil {
			return err
		}
		return writeDifferences(cmd.OutOrStdout(), dynamicconfig.Diff(before, after), isJSON(format))
	}
	return cmd
}

func writeDifferences(w io.Writer, differences []dynamicconfig.Difference, asJSON bool) error {
	var rows [][]string
	for _, d := range differences {
		rows = append(rows, []string{string(d.Change), d.Key, d.Constraints.String(), d.Old, d.New})
		if !asJSON {
			continue
		}
		shown := shownDifference{d.Key, shownConstraintsOf(d.Constraints), string(d.Change), d.Old, d.New}
		if err := output.Line(w, shown); err != nil {
			return err
		}
	}
	switch {
	case asJSON:
		return nil
	case len(rows) == 0:
		_, err := fmt.Fprintln(w, "no difference")
		return wrapWriting(err)
	}
	columns := []output.Column{{Title: "CHANGE"}, {Title: "KEY"}, {Title: "CONSTRAINTS"}, {Title: "OLD"}, {Title: "NEW"}}
	return output.WriteTable(w, columns, rows)
}
