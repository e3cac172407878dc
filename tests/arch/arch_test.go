package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestHouse holds the project's own tree to every rule.
func TestHouse(t *testing.T) {
	tree, err := Load(filepath.Join("..", ".."), HouseLimits())
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, finding := range sorted(rule.Check(tree)) {
				t.Error(finding)
			}
		})
	}
}

// exampleLimits are small, so that the bad examples stay short.
func exampleLimits() Limits {
	return Limits{FileLines: 12, FunctionLines: 6, Parameters: 4, Methods: 7, Nesting: 3}
}

// TestEachRuleRefusesItsBadExample loads the tree under testdata/<rule> and
// compares the rule's findings with the `want` comments in it.
func TestEachRuleRefusesItsBadExample(t *testing.T) {
	for _, rule := range Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			tree, err := Load(filepath.Join("testdata", rule.Name), exampleLimits())
			if err != nil {
				t.Fatal(err)
			}
			wants := wantsOf(tree)
			if len(wants) == 0 {
				t.Fatalf("testdata/%s has no line that the rule must refuse: add a bad example", rule.Name)
			}
			for _, finding := range sorted(rule.Check(tree)) {
				i := slices.IndexFunc(wants, func(w want) bool { return w.answers(finding) })
				if i < 0 {
					t.Errorf("refused, but no want comment on that line asks for it: %s", finding)
					continue
				}
				wants = slices.Delete(wants, i, i+1)
			}
			for _, w := range wants {
				t.Errorf("%s:%d: not refused, want a finding like %q", w.path, w.line, w.pattern)
			}
		})
	}
}

// want is a comment of a bad example: the finding that its line has to get.
type want struct {
	path    string
	line    int
	pattern *regexp.Regexp
}

func (w want) answers(f Finding) bool {
	return w.path == f.Path && w.line == f.Line && w.pattern.MatchString(f.Text)
}

var wantComment = regexp.MustCompile(`want "([^"]+)"`)

func wantsOf(tree *Tree) []want {
	var wants []want
	for path, content := range tree.Texts {
		for i, line := range strings.Split(string(content), "\n") {
			if match := wantComment.FindStringSubmatch(line); match != nil {
				wants = append(wants, want{path: path, line: i + 1, pattern: regexp.MustCompile(match[1])})
			}
		}
	}
	return wants
}

// TestExamplesBelongToRules finds bad examples that no rule reads any more.
func TestExamplesBelongToRules(t *testing.T) {
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.ContainsFunc(Rules(), func(r Rule) bool { return r.Name == entry.Name() }) {
			t.Errorf("testdata/%s belongs to no rule: delete it or name it after its rule", entry.Name())
		}
	}
}

// TestLayoutIsWellFormed keeps the table readable: sorted by level, each
// package once, each exception between neighbours and with its reason.
func TestLayoutIsWellFormed(t *testing.T) {
	rows := map[string]Row{}
	level := 0
	for _, row := range Layout() {
		if _, twice := rows[row.Path]; twice {
			t.Errorf("%s has two rows", row.Path)
		}
		if row.Level < level {
			t.Errorf("%s (level %d) stands below level %d: keep the table sorted", row.Path, row.Level, level)
		}
		if row.Job == "" {
			t.Errorf("%s has no job", row.Path)
		}
		for beside, reason := range row.Beside {
			if other, ok := rows[beside]; !ok || other.Level != row.Level || reason == "" {
				t.Errorf("%s beside %s: name an earlier row of the same level, with the reason", row.Path, beside)
			}
		}
		rows[row.Path], level = row, row.Level
	}
	for _, fence := range Fences() {
		for _, exception := range fence.Except {
			if _, ok := rows[exception]; !ok {
				t.Errorf("the fence around %s excepts %s, which has no row", fence.Into, exception)
			}
		}
	}
}

// TestRowOf shows how a package finds its row.
func TestRowOf(t *testing.T) {
	for _, tt := range []struct {
		pkg  string
		want string
	}{
		{"matching/task", "0 matching/task"},
		{"matching/store/pebble", "3 matching/store/pebble"},
		{"cmd/taskring", "8 cmd/taskring"},
		{"cmd/taskring/bench", "8 cmd/taskring/..."},
		{"tests/arch/stats", "8 tests/..."},
		{"matching/taskful", ""},
		{"matching/task/deeper", ""},
	} {
		got := ""
		if row, ok := rowOf(tt.pkg); ok {
			got = fmt.Sprintf("%d %s", row.Level, row.Path)
		}
		if got != tt.want {
			t.Errorf("rowOf(%q) = %q, want %q", tt.pkg, got, tt.want)
		}
	}
}

// TestStats measures a bad example and compares the figures with a count by hand.
func TestStats(t *testing.T) {
	tree, err := Load(filepath.Join("testdata", "goroutines"), exampleLimits())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if _, err := Measured(tree).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`(?m)^packages +2$`,
		`(?m)^go statements by package +matching/commit 1, ring 1$`,
		`(?m)^findings of goroutines +2$`,
		`(?m)^function, lines +half <= \d+, nine tenths <= \d+, largest \d+ \(ring\.Build\)$`,
		`(?m)^interface, methods +none$`,
	} {
		if !regexp.MustCompile(line).MatchString(b.String()) {
			t.Errorf("no line like %s in\n%s", line, b.String())
		}
	}
}
