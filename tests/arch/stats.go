package arch

import (
	"cmp"
	"fmt"
	"go/ast"
	"io"
	"maps"
	"slices"
	"strings"
)

// Measure is the size of one thing, with its name.
type Measure struct {
	Name string
	Size int
}

// Stats are the quick numbers of a tree. Generated files are not part of them.
type Stats struct {
	Packages int
	// Files, Functions and Interfaces are production code, largest first: in
	// lines, lines and methods.
	Files, Functions, Interfaces []Measure
	// CodeLines and TestLines count production and test files; conformance
	// suites and the packages under tests are test code.
	CodeLines, TestLines int
	// Goroutines counts go statements of production code by package.
	Goroutines map[string]int
	// Findings counts the findings of each rule by the rule's name.
	Findings map[string]int
}

// Measured returns the quick numbers of a tree.
func Measured(t *Tree) *Stats {
	s := &Stats{Packages: len(t.Packages), Goroutines: map[string]int{}, Findings: map[string]int{}}
	t.handWritten(func(pkg *Package, file *File) {
		if file.Test || isConformanceSuite(pkg.Path) || within(pkg.Path, "tests") {
			s.TestLines += file.Lines
			return
		}
		s.CodeLines += file.Lines
		s.Files = append(s.Files, Measure{file.Path, file.Lines})
		s.addDeclarations(t, pkg, file)
	})
	for _, pkg := range t.Packages {
		declared := interfacesOf(pkg)
		for name, spec := range declared {
			s.Interfaces = append(s.Interfaces, Measure{pkg.Path + "." + name, interfaceWidth(declared, spec, 0)})
		}
	}
	for _, rule := range Rules() {
		s.Findings[rule.Name] = len(rule.Check(t))
	}
	for _, list := range [][]Measure{s.Files, s.Functions, s.Interfaces} {
		slices.SortFunc(list, func(a, b Measure) int {
			return cmp.Or(cmp.Compare(b.Size, a.Size), cmp.Compare(a.Name, b.Name))
		})
	}
	return s
}

// legend stands above the numbers.
const legend = `Quick numbers of the hand-written Go code, to see at a glance where it grows.
Files, functions and interfaces are those of production code: how large half of
them are at most, nine tenths, and the largest with its name. Findings are breaches
of the house rules, a line for each rule; the tests of tests/arch want 0.

`

// WriteTo writes the numbers for a person to read.
func (s *Stats) WriteTo(w io.Writer) (int64, error) {
	var b strings.Builder
	b.WriteString(legend)
	line := func(label, format string, args ...any) {
		fmt.Fprintf(&b, "%-28s %s\n", label, fmt.Sprintf(format, args...))
	}
	line("packages", "%d", s.Packages)
	line("lines of code, of tests", "%d, %d (%.2f lines of test for one of code)",
		s.CodeLines, s.TestLines, float64(s.TestLines)/float64(max(1, s.CodeLines)))
	line("file, lines", "%s", spread(s.Files))
	line("function, lines", "%s", spread(s.Functions))
	line("interface, methods", "%s", spread(s.Interfaces))
	line("go statements by package", "%s", counts(s.Goroutines))
	for _, rule := range Rules() {
		line("findings of "+rule.Name, "%d", s.Findings[rule.Name])
	}
	n, err := io.WriteString(w, b.String())
	if err != nil {
		return int64(n), fmt.Errorf("writing the numbers: %w", err)
	}
	return int64(n), nil
}

func (s *Stats) addDeclarations(t *Tree, pkg *Package, file *File) {
	for _, decl := range file.Syntax.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok {
			s.Functions = append(s.Functions, Measure{pkg.Path + "." + fn.Name.Name, functionLines(t, fn)})
		}
	}
	ast.Inspect(file.Syntax, func(n ast.Node) bool {
		if _, ok := n.(*ast.GoStmt); ok {
			s.Goroutines[pkg.Path]++
		}
		return true
	})
}

// spread describes measures that are sorted, largest first.
func spread(list []Measure) string {
	if len(list) == 0 {
		return "none"
	}
	at := func(percent int) int { return list[(len(list)-1)*(100-percent)/100].Size }
	return fmt.Sprintf("half <= %d, nine tenths <= %d, largest %d (%s)", at(50), at(90), list[0].Size, list[0].Name)
}

// counts lists counts by name.
func counts(byName map[string]int) string {
	if len(byName) == 0 {
		return "none"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, byName[name]))
	}
	return strings.Join(parts, ", ")
}
