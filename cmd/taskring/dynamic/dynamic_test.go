package dynamic

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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

// TestHint: whoever cannot start because of the file is told how to go on.
func TestHint(t *testing.T) {
	dir := t.TempDir()
	wrong := filepath.Join(dir, "wrong.yaml")
	if err := os.WriteFile(wrong, []byte("matching.maxLease: 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		wrong:              "config validate " + wrong,
		dir:                "put the file in place",
		dir + "/none.yaml": "put the file in place",
	} {
		_, err := file.Load(path, Registry())
		f := Flags{Path: path}
		if hint := f.Hint(fmt.Errorf("no start: %w", err)); !strings.Contains(hint, want) || !strings.Contains(hint, "--dynamic-config-on-error=defaults") {
			t.Errorf("%s: %v: the hint %q lacks %q", path, err, hint, want)
		}
	}
	if hint := (&Flags{}).Hint(os.ErrDeadlineExceeded); hint != "" {
		t.Errorf("another error has the hint %q", hint)
	}
}
