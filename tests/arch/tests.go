package arch

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// checkSleeps wants no real sleep anywhere: production code waits for an event
// or a context, a test for an event or, in a synctest bubble, for virtual time.
func checkSleeps(t *Tree) []Finding {
	c := collector{tree: t}
	t.handWritten(func(_ *Package, file *File) {
		free := append(bubblesOf(file), choicesOf(file)...)
		ast.Inspect(file.Syntax, func(n ast.Node) bool {
			if isSleep(file, n) && !contains(free, n) {
				c.addf(n.Pos(), "a real sleep: wait for the event itself, or run in synctest.Test, where time is virtual "+
					"(a function called only from there says //arch:bubble REASON)")
			}
			return true
		})
	})
	return c.findings
}

// isSleep recognises time.Sleep and a bare receive from time.After.
func isSleep(file *File, n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		importPath, name := file.selected(n.Fun)
		return importPath == "time" && name == "Sleep"
	case *ast.ExprStmt:
		receive, ok := n.X.(*ast.UnaryExpr)
		if !ok || receive.Op != token.ARROW {
			return false
		}
		call, ok := receive.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		importPath, name := file.selected(call.Fun)
		return importPath == "time" && name == "After"
	}
	return false
}

// bubblesOf returns the parts of a file that run in virtual time: what is given
// to synctest.Test, as a literal or by name, and functions that say so.
func bubblesOf(file *File) []ast.Node {
	var bubbles []ast.Node
	named := map[string]bool{}
	ast.Inspect(file.Syntax, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 2 {
			return true
		}
		if importPath, name := file.selected(call.Fun); importPath != "testing/synctest" || name != "Test" {
			return true
		}
		if id, ok := call.Args[1].(*ast.Ident); ok {
			named[id.Name] = true
		}
		bubbles = append(bubbles, call.Args[1])
		return true
	})
	for _, decl := range file.Syntax.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && (named[fn.Name.Name] || hasDirective(fn, "arch:bubble")) {
			bubbles = append(bubbles, fn)
		}
	}
	return bubbles
}

// choicesOf returns the communications of select statements: a receive from
// time.After there is the bound of a wait, not a sleep.
func choicesOf(file *File) []ast.Node {
	var choices []ast.Node
	ast.Inspect(file.Syntax, func(n ast.Node) bool {
		if clause, ok := n.(*ast.CommClause); ok && clause.Comm != nil {
			choices = append(choices, clause.Comm)
		}
		return true
	})
	return choices
}

// contains reports whether n lies in one of the regions.
func contains(regions []ast.Node, n ast.Node) bool {
	for _, region := range regions {
		if region.Pos() <= n.Pos() && n.End() <= region.End() {
			return true
		}
	}
	return false
}

// fixedPort matches an address with a port other than 0.
var fixedPort = regexp.MustCompile(`^"[^"]*:[1-9][0-9]*"$`)

// checkPorts wants tests to listen on port 0: two runs on one machine must not
// meet.
func checkPorts(t *Tree) []Finding {
	c := collector{tree: t}
	t.handWritten(func(_ *Package, file *File) {
		if !file.Test {
			return
		}
		ast.Inspect(file.Syntax, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			if importPath, name := file.selected(call.Fun); importPath != "net" || !strings.HasPrefix(name, "Listen") {
				return true
			}
			for _, arg := range call.Args {
				if lit, ok := arg.(*ast.BasicLit); ok && fixedPort.MatchString(lit.Value) {
					c.addf(arg.Pos(), "a fixed port: listen on port 0 and ask the listener for its address, or use bufconn")
				}
			}
			return true
		})
	})
	return c.findings
}

// mockLibraries generate fakes or bring a second way to write tests.
var mockLibraries = []string{
	"go.uber.org/mock", "github.com/golang/mock", "github.com/stretchr/testify", "github.com/vektra/mockery",
	"github.com/onsi/ginkgo", "github.com/onsi/gomega",
}

// checkMocks wants fakes written by hand and plain tests.
func checkMocks(t *Tree) []Finding {
	c := collector{tree: t}
	t.all(func(_ *Package, file *File) {
		if strings.Contains(strings.ToLower(path.Base(file.Path)), "mock") {
			c.addf(file.Syntax.Package, "a mock file: write a small fake by hand that keeps the interface's promises")
		}
		for _, spec := range file.Syntax.Imports {
			c.checkMockImport(spec)
		}
		eachTypeSpec(file, func(_ *ast.GenDecl, spec *ast.TypeSpec) {
			if strings.Contains(strings.ToLower(spec.Name.Name), "mock") {
				c.addf(spec.Pos(), "type %s is a mock: write a fake that keeps the interface's promises and name it so", spec.Name.Name)
			}
		})
	})
	return c.findings
}

func (c *collector) checkMockImport(spec *ast.ImportSpec) {
	for _, library := range mockLibraries {
		if importPath := importPathOf(spec); within(importPath, library) {
			c.addf(spec.Pos(), "%s has no place here: use the standard testing package, rapid, datadriven and fakes by hand", importPath)
		}
	}
}

// checkTestingImport wants no test code in what is built for production.
// Conformance suites and the packages under tests are tests themselves.
func checkTestingImport(t *Tree) []Finding {
	c := collector{tree: t}
	t.production(func(pkg *Package, file *File) {
		if isConformanceSuite(pkg.Path) || within(pkg.Path, "tests") {
			return
		}
		for _, spec := range file.Syntax.Imports {
			if importPath := importPathOf(spec); within(importPath, "testing") {
				c.addf(spec.Pos(), "production code imports %s: move it to a _test file or to a package whose name ends in test", importPath)
			}
		}
	})
	return c.findings
}
