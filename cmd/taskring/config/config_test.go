package config

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/dynamicconfig"
)

// settings are a few such as the packages of a node declare.
func settings(t *testing.T) *dynamicconfig.Registry {
	t.Helper()
	r, err := dynamicconfig.NewRegistry(
		dynamicconfig.PerQueue(dynamicconfig.Int{
			Key: "matching.numTaskqueueWritePartitions", Default: 4, Min: 1, Max: 1000, Doc: "Partitions written to.",
			Formerly: []string{"matching.writePartitions"},
		}),
		dynamicconfig.PerQueue(dynamicconfig.Duration{
			Key: "matching.longPollExpirationInterval", Default: time.Minute, Min: time.Second, Doc: "Longest poll.",
		}),
		dynamicconfig.Global(dynamicconfig.GradualOf(dynamicconfig.Int{
			Key: "matching.spreadRoutingBatchSize", Doc: "Partitions of a queue on different nodes.",
		})),
	)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCommands runs testdata/*: `file NAME` writes a file, `run ARGS` a command.
// `go test -rewrite` writes the answers anew: read the difference.
func TestCommands(t *testing.T) {
	r := settings(t)
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		dir := t.TempDir()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			switch d.Cmd {
			case "file":
				if err := os.WriteFile(dir+"/"+d.CmdArgs[0].Key, []byte(d.Input+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				return ""
			case "run":
				return run(Command(r), dir, strings.Fields(d.Input))
			}
			t.Fatalf("unknown command %s", d.Cmd)
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

func TestDocs(t *testing.T) {
	r := settings(t)
	dir := t.TempDir()
	if got := run(Command(r), dir, []string{"docs"}); got != r.Page("taskring config docs") {
		t.Errorf("docs prints\n%s", got)
	}
	if got := run(Command(r), dir, []string{"docs", "--out", dir + "/settings.md"}); got != "" {
		t.Errorf("docs --out says %q", got)
	}
	written, err := os.ReadFile(dir + "/settings.md")
	if err != nil || string(written) != r.Page("taskring config docs") {
		t.Errorf("the file holds %v\n%s", err, written)
	}
	cmd := Command(r)
	cmd.SetArgs([]string{"docs", "--out", dir + "/none/settings.md"})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.Execute(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory that is missing: %v", err)
	}
}
