package dynamic

import (
	"testing"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/dynamicconfig/file"
)

// TestExample: the example of the documentation is a file that a node takes.
func TestExample(t *testing.T) {
	in, err := file.Load("../../../docs/dynamic-config.yaml", Registry())
	if err != nil || len(in.Entries()) < 10 || len(in.Warnings()) > 0 {
		t.Errorf("%d entries, warnings %v, error %v", len(in.Entries()), in.Warnings(), err)
	}
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args     []string
		path     string
		defaults bool
		fails    bool
	}{
		{args: nil},
		{args: []string{"--dynamic-config", "f.yaml"}, path: "f.yaml"},
		{args: []string{"--dynamic-config=f.yaml", "--dynamic-config-on-error=defaults"}, path: "f.yaml", defaults: true},
		{args: []string{"--dynamic-config-on-error=refuse"}},
		{args: []string{"--dynamic-config-on-error=ignore"}, fails: true},
	} {
		var f Flags
		cmd := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }, SilenceErrors: true, SilenceUsage: true}
		f.Add(cmd)
		cmd.SetArgs(c.args)
		err := cmd.Execute()
		if (err != nil) != c.fails || (err == nil && (f.Path != c.path || f.StartOnDefaults() != c.defaults)) {
			t.Errorf("%q: %+v, %v, code %d", c.args, f, err, exit.Of(err))
		}
	}
}
