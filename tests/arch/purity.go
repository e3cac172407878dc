package arch

import (
	"go/ast"
	"slices"
)

// Functions that the rules below look for, by import path.
var (
	// clockFunctions read or wait for the machine's clock.
	clockFunctions = map[string][]string{
		"time": {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
	}
	// ownRandom are the functions of the random packages that do not touch the
	// process-wide source; everything else of them does.
	ownRandom = map[string][]string{
		"math/rand":    {"New", "NewSource", "NewZipf"},
		"math/rand/v2": {"New", "NewPCG", "NewChaCha8", "NewZipf"},
	}
	// randomTypes may be named anywhere.
	randomTypes = []string{"Rand", "Source", "Source64", "Zipf", "PCG", "ChaCha8"}
	// fileFunctions touch the file system.
	fileFunctions = map[string][]string{
		"os": {
			"Open", "OpenFile", "Create", "CreateTemp", "ReadFile", "WriteFile", "ReadDir", "Mkdir", "MkdirAll", "MkdirTemp",
			"Remove", "RemoveAll", "Rename", "Stat", "Lstat", "Chmod", "Chown", "Chtimes", "Truncate", "Link", "Symlink",
			"Readlink", "DirFS", "OpenRoot", "OpenInRoot", "CopyFS", "Chdir",
		},
		"path/filepath": {"Walk", "WalkDir", "Glob", "EvalSymlinks"},
	}
	// impureImports have no place in a pure package, nor has what lies below
	// them, with what to do instead.
	impureImports = map[string]string{
		"context":                  "a core never waits; its shell does",
		"log":                      "return what happened; the shell logs it",
		"crypto/rand":              "take a *rand.Rand",
		"net":                      "leave I/O to the shell",
		"os":                       "leave I/O to the shell",
		"golang.org/x/sync":        "leave goroutines to the shell",
		"go.opentelemetry.io/otel": "return figures; the shell reports them",
	}
)

// checkPurity wants packages of levels 0 and 1 to take values in and give
// values out.
func checkPurity(t *Tree) []Finding {
	c := collector{tree: t}
	eachPureFile(t, func(pkg *Package, file *File) {
		for _, spec := range file.Syntax.Imports {
			for impure, remedy := range impureImports {
				if path := importPathOf(spec); within(path, impure) {
					c.addf(spec.Pos(), "%s is a pure package and may not import %s: %s", pkg.Path, path, remedy)
				}
			}
		}
		ast.Inspect(file.Syntax, func(n ast.Node) bool {
			c.checkPureNode(pkg, file, n)
			return true
		})
	})
	return c.findings
}

// eachPureFile calls visit for each production file of levels 0 and 1.
func eachPureFile(t *Tree, visit func(*Package, *File)) {
	t.production(func(pkg *Package, file *File) {
		if row, ok := rowOf(pkg.Path); ok && row.Level <= highestPureLevel {
			visit(pkg, file)
		}
	})
}

func (c *collector) checkPureNode(pkg *Package, file *File, n ast.Node) {
	switch n := n.(type) {
	case *ast.FuncDecl:
		if n.Recv == nil && n.Name.Name == "init" {
			c.addf(n.Pos(), "%s is a pure package and may not have an init: build the value where it is used", pkg.Path)
		}
	case *ast.SelectorExpr:
		importPath, name := file.selected(n)
		if slices.Contains(clockFunctions[importPath], name) {
			c.addf(n.Pos(), "%s is a pure package and may not call %s.%s: take `now time.Time` as an argument", pkg.Path, importPath, name)
		}
		if isGlobalRandom(importPath, name) {
			c.addf(n.Pos(), "%s is a pure package and may not use the global source by %s.%s: take a *rand.Rand", pkg.Path, importPath, name)
		}
	}
}

func isGlobalRandom(importPath, name string) bool {
	own, isRandom := ownRandom[importPath]
	return isRandom && !slices.Contains(own, name) && !slices.Contains(randomTypes, name)
}

// checkGoroutines wants no goroutine below level 2: no go statement, and no
// call of a method Go, which starts one behind the scenes.
func checkGoroutines(t *Tree) []Finding {
	c := collector{tree: t}
	eachPureFile(t, func(pkg *Package, file *File) {
		ast.Inspect(file.Syntax, func(n ast.Node) bool {
			if startsGoroutine(n) {
				c.addf(n.Pos(), "%s (level 0 or 1) may not start a goroutine: return what is to be done and let its shell do it", pkg.Path)
			}
			return true
		})
	})
	return c.findings
}

func startsGoroutine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		sel, ok := n.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Go" && len(n.Args) == 1
	}
	return false
}

// checkFileCalls wants the file system to be touched only by those who own files.
func checkFileCalls(t *Tree) []Finding {
	c := collector{tree: t}
	t.production(func(pkg *Package, file *File) {
		if listed(pkg.Path, fileCallers) {
			return
		}
		ast.Inspect(file.Syntax, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if importPath, name := file.selected(sel); slices.Contains(fileFunctions[importPath], name) {
				c.addf(n.Pos(), "%s may not call %s.%s: files belong to the stores, dynamicconfig/file and cmd; take the content or an io.Reader",
					pkg.Path, importPath, name)
			}
			return true
		})
	})
	return c.findings
}
