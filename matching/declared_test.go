package matching

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/matching/commit"
	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/server"
	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring/route"
)

// TestEverySettingIsRead: whatever is declared changes what some package is given.
func TestEverySettingIsRead(t *testing.T) {
	r := registry(t)
	q := partition.Queue{Namespace: "ns", Name: "q", Type: partition.Activity}
	read := func(in *dynamicconfig.Snapshot) []any {
		return []any{
			server.SettingsIn(in), server.PerQueueIn(in, q), engine.SettingsIn(in), engine.PerQueueIn(in, q),
			commit.SettingsIn(in), queue.SettingsIn(in, q), route.BatchSizesIn(in, q),
		}
	}
	values := []string{"7", "77", "77s", "770ms", "77KiB", "7MiB", "oldestFirst", "{initial: 2s}"}
	for _, def := range r.Settings() {
		key, changes := def.About().Key, false
		for _, value := range values {
			in, err := r.Parse([]byte(key + ": " + value))
			changes = changes || (err == nil && !reflect.DeepEqual(read(in), read(nil)))
		}
		if !changes {
			t.Errorf("%s: no value of %q changes anything", key, values)
		}
	}
}

// TestRefusalsNameSettings: whatever looks like a key in a text of this server is
// a setting that there is.
func TestRefusalsNameSettings(t *testing.T) {
	r := registry(t)
	key := regexp.MustCompile(`\bmatching\.[a-z]+[A-Z][A-Za-z]+`)
	named := map[string]bool{}
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "matchingpb") {
			return err
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(syntax, func(node ast.Node) bool {
			if text, ok := node.(*ast.BasicLit); ok && text.Kind == token.STRING {
				for _, k := range key.FindAllString(text.Value, -1) {
					named[k] = true
					if _, err := r.Find(k); err != nil {
						t.Errorf("%s: %v", path, err)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil || len(named) < 20 || !named["matching.maxPendingItems"] {
		t.Errorf("%d keys are named: %v", len(named), err)
	}
}
