package config

import (
	"os"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/ring/route"
)

// TestPreview runs previews/*, in the form of TestCommands, with the settings of
// routing themselves.
func TestPreview(t *testing.T) {
	r, err := dynamicconfig.NewRegistry(append(wire.Declared(), route.Declared()...)...)
	if err != nil {
		t.Fatal(err)
	}
	datadriven.Walk(t, "previews", func(t *testing.T, path string) {
		t.Helper()
		dir := t.TempDir()
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			if d.Cmd == "run" {
				return run(Command(r), dir, strings.Fields(d.Input))
			}
			if err := os.WriteFile(dir+"/"+d.CmdArgs[0].Key, []byte(d.Input+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			return ""
		})
	})
}
