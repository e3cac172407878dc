package dynamicconfig

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/taskring/taskring/partition"
)

// TestScripts runs testdata/*: each case is a file and what comes of it.
// `go test -run Scripts -rewrite` writes the answers anew: read the difference
// before you keep it.
//
//	load          the entries, or all problems; then the warnings
//	diff          two files, separated by a line "=="
//	explain KEY [namespace=N] [queue=Q] [type=T]
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		t.Helper()
		if strings.Contains(path, "fuzz") {
			t.Skip("recorded inputs, not a script")
		}
		r := registry(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			switch d.Cmd {
			case "load":
				return scriptLoad(r, d.Input)
			case "diff":
				return scriptDiff(t, r, d.Input)
			case "explain":
				return scriptExplain(t, r, d)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

func scriptLoad(r *Registry, input string) string {
	s, err := r.Parse([]byte(input))
	if err != nil {
		return "refused:\n" + err.Error()
	}
	var b strings.Builder
	for _, e := range s.Entries() {
		fmt.Fprintf(&b, "%s %v %s\n", e.Key, e.Constraints, e.Value)
	}
	for _, w := range s.Warnings() {
		fmt.Fprintf(&b, "warning: %v\n", w)
	}
	if b.Len() == 0 {
		return "all defaults\n"
	}
	return b.String()
}

func scriptDiff(t *testing.T, r *Registry, input string) string {
	t.Helper()
	before, after, _ := strings.Cut(input, "==\n")
	old, err := r.Parse([]byte(before))
	if err != nil {
		t.Fatal(err)
	}
	now, err := r.Parse([]byte(after))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, d := range Diff(old, now) {
		fmt.Fprintf(&b, "%s %s %v: %s -> %s\n", d.Change, d.Key, d.Constraints, d.Old, d.New)
	}
	if b.Len() == 0 {
		return "no difference\n"
	}
	return b.String()
}

func scriptExplain(t *testing.T, r *Registry, d *datadriven.TestData) string {
	t.Helper()
	var q partition.Queue
	var err error
	for _, arg := range d.CmdArgs[1:] {
		switch arg.Key {
		case "namespace":
			q.Namespace = arg.Vals[0]
		case "queue":
			q.Name = arg.Vals[0]
		case "type":
			q.Type, err = partition.ParseTaskType(arg.Vals[0])
		}
	}
	s, parseErr := r.Parse([]byte(d.Input))
	def, findErr := r.Find(d.CmdArgs[0].Key)
	if err := errors.Join(err, parseErr, findErr); err != nil {
		t.Fatal(err)
	}
	x := s.Explain(def, q, ten.Add(30*time.Minute))
	var b strings.Builder
	fmt.Fprintf(&b, "%s = %s", x.Key, x.Value)
	if x.IsDefault {
		b.WriteString(" (default)")
	}
	b.WriteString("\n")
	if x.Gradual != "" {
		fmt.Fprintf(&b, "gradual: %s\n", x.Gradual)
	}
	for _, c := range x.Candidates {
		mark := "  "
		if c.Wins {
			mark = "> "
		}
		fmt.Fprintf(&b, "%sline %d: %s for %v: %s\n", mark, c.Entry.Line, c.Entry.Value, c.Entry.Constraints, c.Why)
	}
	return b.String()
}

// TestKindsReachCode reads one value of each kind as the code that declared it.
func TestKindsReachCode(t *testing.T) {
	s := load(t, `
node.debug: true
node.banner: "good: day"
node.share: 0.5
node.memory: 1.5GiB
matching.spreadRoutingBatchSize: 8
matching.namespaceRPS: [{value: 7, constraints: {namespace: shop}}]
matching.numTaskqueueWritePartitions: 1_0
matching.longPollExpirationInterval: 1m30s
matching.pollOrder: Oldest
matching.fairness: {old: false, new: true, percent: 100}
matching.counter: {width: 7}
matching.scaleUps: [{window: 1d, rate: 2}, {}]
matching.tags: []
matching.weights: {a: 1, b: 2}
`)
	q := queueOf("shop", "orders", partition.Activity)
	for name, pair := range map[string][2]any{
		"bool":          {debug.Get(s), true},
		"string":        {banner.Get(s), "good: day"},
		"float":         {share.Get(s), 0.5},
		"size":          {memory.Get(s), int64(3 << 29)},
		"gradual":       {spread.Get(s), Constant(8)},
		"namespace":     {rps.Get(s, "shop"), 7},
		"other":         {rps.Get(s, "bank"), 1200},
		"int":           {writes.Get(s, q), 10},
		"duration":      {wait.Get(s, q), 90 * time.Second},
		"enum":          {polls.Get(s, q), oldest},
		"gradual bool":  {fair.Get(s, q).Value("", ten), true},
		"struct":        {counter.Get(s, q), sketch{Width: 7, Decay: time.Minute}},
		"structs":       {ups.Get(s, q), []step{{24 * time.Hour, 2}, {time.Second, 0}}},
		"empty list":    {tags.Get(s, q), []string{}},
		"map":           {weights.Get(s, q), map[string]int{"a": 1, "b": 2}},
		"default size":  {memory.Get(nil), int64(256 << 20)},
		"default list":  {tags.Get(nil, q), []string{"a"}},
		"default field": {counter.Get(nil, q), sketch{100, time.Minute}},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %v (%T), want %v (%T)", name, pair[0], pair[0], pair[1], pair[1])
		}
	}
}

// TestWrittenValuesAreReadBack: what Entries shows can be put into a file and
// means the same.
func TestWrittenValuesAreReadBack(t *testing.T) {
	s := load(t, `
node.banner: "yes"
node.memory: 1536MiB
matching.spreadRoutingBatchSize: {old: 0, new: 8, start: 2026-12-01T10:00:00.5+01:00, end: 2026-12-02T10:00:00Z}
matching.longPollExpirationInterval: 61s
matching.counter: {width: 7, decay: 36h}
matching.fairness: {old: false, new: true, percent: 12.5}
matching.scaleUps: [{window: 1h30m, rate: 0.25}]
matching.tags: ["a b", "1", "", "true", plain, "né", "x: y"]
matching.weights: {"a:b": 1, "~": 2}
`)
	var b strings.Builder
	for _, e := range s.Entries() {
		fmt.Fprintf(&b, "%s: [{value: %s, constraints: %v}]\n", e.Key, e.Value, e.Constraints)
	}
	if d := Diff(s, load(t, b.String())); len(d) != 0 {
		t.Errorf("written as\n%sit differs: %v", b.String(), d)
	}
}

func TestHash(t *testing.T) {
	// sha256sum of these bytes, cut to 16 digits.
	if got, want := load(t, "node.debug: true\n").Hash(), "8c6a9a88b6d07ab3"; got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
	a, _ := NewSnapshot(debug.With(true), writes.With(7, Constraints{Namespace: "a"}))
	b, _ := NewSnapshot(writes.With(7, Constraints{Namespace: "a"}), debug.With(true))
	c, _ := NewSnapshot(writes.With(7, Constraints{Namespace: "b"}), debug.With(true))
	if a.Hash() != b.Hash() || a.Hash() == c.Hash() {
		t.Errorf("hashes %s %s %s: the order counts, or the constraints do not", a.Hash(), b.Hash(), c.Hash())
	}
}

func TestOverridesAreChecked(t *testing.T) {
	_, err := NewSnapshot(
		writes.With(0, Constraints{}),
		writes.With(1, Constraints{TaskType: 9}),
		rps.With(5, "/_sys/x"),
		debug.With(true), debug.With(false),
		counter.With(sketch{Width: 0, Decay: -1}, Constraints{}),
		weights.With(map[string]int{"a": 11}, Constraints{}),
		banner.With("a\nb"),
		polls.With(7, Constraints{}),
		spread.With(Constant(-1)),
	)
	for _, want := range []string{
		"matching.numTaskqueueWritePartitions: 0 is below the minimum of 1", "taskType 9", "reserved prefix",
		"node.debug: a second value", "width: 0 is below", "decay: -1ns is below", "11 is above the maximum of 10",
		"more than one line", "7 is not one of newest, oldest", "-1 is below the minimum of 0",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %q in:\n%v", want, err)
		}
	}
}

func TestDeclarationsAreChecked(t *testing.T) {
	_, err := NewRegistry(
		debug, Global(Int{Key: "Node.DEBUG", Doc: "Same key, other case."}),
		Global(Int{Key: "x.a", Default: 5, Max: 3, Doc: "Default out of bounds."}),
		Global(Int{Key: "x", Doc: "No dot."}),
		Global(Int{Key: "x.b"}),
		Global(GradualOf(List[string]{Key: "x.c", Of: String{}, Doc: "Not a scalar."})),
		Global(Int{Key: "x.d", Doc: "Claims a former key.", Formerly: []string{"x.b"}}),
		Global(List[step]{Key: "x.e", Doc: "A field takes a word of the form.", Of: Struct[step]{
			Fields: []Field[step]{FieldOf(Float{Key: "value"}, func(s *step) *float64 { return &s.Rate })},
		}}),
		Removed{Key: "node.debug", Advice: "It is not."},
	)
	for _, want := range []string{
		`"Node.DEBUG" is declared twice`, "5 is above the maximum of 3", "words with dots", `"x.b": Doc is missing`,
		"cannot change gradually", `"x.b" is declared twice`, "may not be called value", `"node.debug" is declared twice`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no word of %q in:\n%v", want, err)
		}
	}
}

func TestFind(t *testing.T) {
	r := registry(t)
	for key, want := range map[string]string{
		"NODE.debug": "node.debug", "matching.rps": "matching.namespaceRPS",
	} {
		if def, err := r.Find(key); err != nil || def.About().Key != want {
			t.Errorf("Find(%q) = %v, %v", key, def, err)
		}
	}
	for key, want := range map[string]string{
		"node.debgu": `did you mean "node.debug"?`, "pollorder": `did you mean "matching.pollOrder"?`,
		"matching.idBlock": "ids need no blocks", "else.where": `"else.where" is not a setting`,
	} {
		if _, err := r.Find(key); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Find(%q): %v, want %q", key, err, want)
		}
	}
	settings := r.Settings()
	if len(settings) != len(fixture())-1 || !slices.IsSortedFunc(settings, func(a, b *Definition) int {
		return strings.Compare(a.about.Key, b.about.Key)
	}) {
		t.Errorf("%d settings, or not sorted", len(settings))
	}
}

func TestPage(t *testing.T) {
	page := registry(t).Page("taskring config docs")
	for _, d := range registry(t).Settings() {
		if !strings.Contains(page, "### `"+d.about.Key+"`\n\n"+d.about.Doc) {
			t.Errorf("the page does not describe %s", d.about.Key)
		}
	}
	for _, want := range []string{
		"## matching\n", "| type | int, in requests per second |", "| default | `256MiB` |", "| values | 1s to 5m |",
		"| scope | task queue |", "| formerly | `matching.rps` |", "| takes effect | partitions are reloaded, paced |",
		"| `oldest` | Shares the work. |", "| `decay` | duration | `1m` | at least 0s | Half-life. |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if again := registry(t).Page("taskring config docs"); again != page {
		t.Error("two pages of the same settings differ")
	}
}

func TestManyProblems(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "matching.nonsense%d: 1\n", i)
	}
	_, err := registry(t).Parse([]byte(b.String()))
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != 5000 || problems[4999].Line != 5000 {
		t.Errorf("%d problems, want 5000, one a line", len(problems))
	}
}

// TestAliasesAreBounded: a short file may come to many values.
func TestAliasesAreBounded(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "matching.tags:\n  - value: &many [%sx]\n", strings.Repeat("x, ", 99))
	for i := range 10_000 {
		fmt.Fprintf(&b, "  - {value: *many, constraints: {namespace: n%d}}\n", i)
	}
	if _, err := registry(t).Parse([]byte(b.String())); err == nil || !strings.Contains(err.Error(), "more than 1000000 values") {
		t.Errorf("a million values and one list more: %.200v", err)
	}
}
