package rings

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/ring/route"
)

// TestCommands runs testdata/*: `file NAME` writes a file, `run ARGS` a command.
// `go test -rewrite` writes the answers anew: read the difference.
func TestCommands(t *testing.T) {
	registry, err := dynamicconfig.NewRegistry(route.Declared()...)
	if err != nil {
		t.Fatal(err)
	}
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		dir := t.TempDir()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			if d.Cmd == "run" {
				return run(Command(registry), dir, strings.Fields(d.Input))
			}
			if err := os.WriteFile(dir+"/"+d.CmdArgs[0].Key, []byte(d.Input+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return ""
		})
	})
}

// run carries out a command whose files lie in dir and returns all that it says.
func run(cmd *cobra.Command, dir string, args []string) string {
	for i, arg := range args {
		if strings.HasSuffix(arg, ".yaml") {
			args[i] = dir + "/" + arg
		}
	}
	var out strings.Builder
	cmd.SetOut(&out)
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.Execute(); err != nil {
		fmt.Fprintf(&out, "taskring: %v\nexit code %d\n", err, exit.Of(err))
	}
	return strings.ReplaceAll(out.String(), dir+"/", "")
}
