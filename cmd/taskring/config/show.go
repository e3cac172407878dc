package config

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/dynamicconfig"
)

// shownSettings is what show prints as JSON.
type shownSettings struct {
	Hash    string       `json:"hash"`
	Entries []shownEntry `json:"entries"`
}

// shownEntry is an entry as JSON; a default has line 0.
type shownEntry struct {
	Key         string           `json:"key"`
	Value       string           `json:"value"`
	Constraints shownConstraints `json:"constraints"`
	Line        int              `json:"line,omitempty"`
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
	return shownEntry{e.Key, e.Value, shownConstraintsOf(e.Constraints), e.Line}
}

func showCommand(registry *dynamicconfig.Registry) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Print the values of a file and its hash",
		Long: `Print the entries of a dynamic-config file and its hash. A node that runs it
reports the same hash as the metric dynamic_config_info.`,
		Args: cobra.NoArgs,
	}
	path := fileFlag(cmd, "the dynamic-config file (required)")
	cmd.Flags().BoolVar(&all, "all", false, "also settings that the file leaves at their defaults")
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		snapshot, err := load(*path, registry)
		if err != nil {
			return err
		}
		entries := snapshot.Entries()
		if all {
			entries = append(entries, defaultsBeside(entries, registry)...)
		}
		return writeSettings(cmd.OutOrStdout(), snapshot.Hash(), entries, isJSON(format))
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

func writeSettings(w io.Writer, hash string, entries []dynamicconfig.Entry, asJSON bool) error {
	if asJSON {
		shown := shownSettings{Hash: hash, Entries: []shownEntry{}}
		for _, e := range entries {
			shown.Entries = append(shown.Entries, shownEntryOf(e))
		}
		return output.Line(w, shown)
	}
	if _, err := fmt.Fprintf(w, "hash  %s\n\n", hash); err != nil {
		return wrapWriting(err)
	}
	columns := []output.Column{{Title: "KEY"}, {Title: "VALUE"}, {Title: "CONSTRAINTS"}}
	var rows [][]string
	for _, e := range entries {
		constraints := e.Constraints.String()
		if e.Line == 0 {
			constraints = "(default)"
		}
		rows = append(rows, []string{e.Key, e.Value, constraints})
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
		Args: cobra.ExactArgs(2),
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
