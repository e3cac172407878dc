package arch

import (
	"go/ast"
	"slices"
	"strings"
)

// checkTable wants a row in the layout for every package.
func checkTable(t *Tree) []Finding {
	c := collector{tree: t}
	for _, pkg := range t.Packages {
		if _, ok := rowOf(pkg.Path); !ok {
			c.addf(pkg.Files[0].Syntax.Package,
				"package %s has no row in the layout: give it one in levels.go, with its level and its single job, or merge it into its neighbour",
				pkg.Path)
		}
	}
	return c.findings
}

// checkImports wants every import between the project's own packages to point
// down the layout. Test files may also import their own level and conformance
// suites, never a level above: a test that needs one belongs under tests.
func checkImports(t *Tree) []Finding {
	c := collector{tree: t}
	eachOwnImport(t, func(pkg *Package, file *File, spec *ast.ImportSpec, target string) {
		from, known := rowOf(pkg.Path)
		to, targetKnown := rowOf(target)
		allowed := pointsDown(pkg.Path, target, from, to) || (file.Test && testMayImport(target, from, to))
		if known && targetKnown && !allowed {
			c.addf(spec.Pos(),
				"%s (level %d) may not import %s (level %d): move the code down, declare an interface where it is used, "+
					"or change the layout in levels.go with the reason",
				pkg.Path, from.Level, target, to.Level)
		}
	})
	return c.findings
}

// pointsDown reports whether production code of package from may import target.
func pointsDown(pkgPath, target string, from, to Row) bool {
	_, beside := from.Beside[target]
	siblings := from.Path == to.Path && strings.HasSuffix(from.Path, "/...")
	ownChild := from.Root && within(target, pkgPath)
	return to.Level < from.Level || beside || siblings || ownChild
}

// testMayImport reports what a test file may import beyond production code.
func testMayImport(target string, from, to Row) bool {
	return to.Level <= from.Level || isConformanceSuite(target)
}

// isConformanceSuite reports whether a package holds tests for the
// implementations of an interface: its name ends in "test", as net/http/httptest.
func isConformanceSuite(pkgPath string) bool {
	return strings.HasSuffix(pkgPath, "test")
}

// checkFences wants the walls of Fences to stand.
func checkFences(t *Tree) []Finding {
	c := collector{tree: t}
	eachOwnImport(t, func(pkg *Package, _ *File, spec *ast.ImportSpec, target string) {
		for _, fence := range Fences() {
			if within(pkg.Path, fence.From) && within(target, fence.Into) && !slices.Contains(fence.Except, target) {
				c.addf(spec.Pos(), "%s may not import %s (%s): let cmd/taskring hand it over behind an interface or a function",
					pkg.Path, target, fence.Reason)
			}
		}
	})
	return c.findings
}

// eachOwnImport calls visit for each import of one of the project's packages.
func eachOwnImport(t *Tree, visit func(pkg *Package, file *File, spec *ast.ImportSpec, target string)) {
	t.all(func(pkg *Package, file *File) {
		for _, spec := range file.Syntax.Imports {
			if target, own := strings.CutPrefix(importPathOf(spec), ModulePath+"/"); own && target != pkg.Path {
				visit(pkg, file, spec, target)
			}
		}
	})
}

// checkLibraries wants the libraries of Libraries only where they are listed,
// and nothing but the standard library where the layout says so.
func checkLibraries(t *Tree) []Finding {
	c := collector{tree: t}
	t.handWritten(func(pkg *Package, file *File) {
		row, _ := rowOf(pkg.Path)
		for _, spec := range file.Syntax.Imports {
			importPath := importPathOf(spec)
			if lib, ok := libraryOf(importPath); ok && !listed(pkg.Path, lib.Only) {
				c.addf(spec.Pos(), "%s is only for %s (%s): pass plain values or a function from there",
					importPath, strings.Join(lib.Only, ", "), lib.Reason)
			}
			if row.StandardOnly && !file.Test && isExternal(importPath) {
				c.addf(spec.Pos(), "%s may import the standard library only, not %s: write the few lines that it needs",
					pkg.Path, importPath)
			}
		}
	})
	return c.findings
}

// libraryOf returns the entry of Libraries whose path fits best.
func libraryOf(importPath string) (Library, bool) {
	var best Library
	for _, lib := range Libraries() {
		if within(importPath, lib.Path) && len(lib.Path) > len(best.Path) {
			best = lib
		}
	}
	return best, best.Path != ""
}

// isExternal reports whether an import path lies outside the standard library:
// only those have a dot in their first element.
func isExternal(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return strings.Contains(first, ".")
}
