//go:build !race

// The race detector makes a minute of what takes some seconds here, and nothing of it
// runs concurrently.

package routesim

import (
	"os"
	"strings"
	"testing"
)

// TestFiguresAreOnThePage plays what docs/routing.md tells of: no call fails, almost
// all reach the right node at once, and once all agree none is sent elsewhere.
func TestFiguresAreOnThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Scenarios() {
		f, err := Play(s, Seed)
		if err != nil {
			t.Fatal(err)
		}
		if f.Failed > 0 || f.Calls < 50_000 {
			t.Errorf("%s: %d of %d calls failed", s.Name, f.Failed, f.Calls)
		}
		// A call that is under way when all come to agree still follows what it was told.
		if f.LastReroute > f.Agree+hop {
			t.Errorf("%s: a call was sent elsewhere %v after a change, all agreed after %v", s.Name, f.LastReroute, f.Agree)
		}
		if row := f.row(s); !strings.Contains(string(page), row) {
			t.Errorf("docs/routing.md lacks the row\n%srun: go run ./tests/ringtables -out docs/routing.md -table routing", row)
		}
	}
}
