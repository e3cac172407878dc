package arch

import (
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// emptyNames say nothing about what a package does.
var emptyNames = []string{
	"util", "utils", "common", "commons", "helper", "helpers", "types", "models", "interfaces", "base", "misc",
}

// emptySuffixes say nothing about what a type is.
var emptySuffixes = []string{"Manager", "Impl", "Helper", "Helpers", "Data", "Info"}

// topLevel is all that may lie in the root, directories with a slash.
var topLevel = []string{
	"matching/", "client/", "ring/", "partition/", "dynamicconfig/", "cmd/", "tests/", "docs/", ".ci/",
	"go.mod", "go.sum", "Makefile", "README.md", "CHANGELOG.md", "LICENSE",
	".buf.yaml", ".buf.gen.yaml", ".golangci.yml", ".editorconfig", ".gitignore", ".gitattributes",
	".git/", ".git", "bin/", "taskring-data/", // not part of the project: the repository, build results, local data
}

// checkNames wants packages and types named after what they do or are.
func checkNames(t *Tree) []Finding {
	c := collector{tree: t}
	for _, pkg := range t.Packages {
		for _, name := range []string{pkg.Files[0].Syntax.Name.Name, path.Base(pkg.Path)} {
			if slices.Contains(emptyNames, strings.TrimSuffix(name, "_test")) {
				c.addf(pkg.Files[0].Syntax.Package, "package name %s says nothing: name it after its single job", name)
				break
			}
		}
	}
	t.handWritten(func(_ *Package, file *File) {
		eachTypeSpec(file, func(_ *ast.GenDecl, spec *ast.TypeSpec) {
			for _, suffix := range emptySuffixes {
				if strings.HasSuffix(spec.Name.Name, suffix) {
					c.addf(spec.Pos(), "type name %s ends in %s, which says nothing: use the domain's noun", spec.Name.Name, suffix)
				}
			}
		})
	})
	return c.findings
}

// eachTypeSpec calls visit for each type declared at the top of a file.
func eachTypeSpec(file *File, visit func(*ast.GenDecl, *ast.TypeSpec)) {
	for _, decl := range file.Syntax.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok || gen.Tok != token.TYPE {
			continue
		}
		for _, spec := range gen.Specs {
			if typeSpec, ok := spec.(*ast.TypeSpec); ok {
				visit(gen, typeSpec)
			}
		}
	}
}

// checkTopLevel wants nothing in the root but what the layout knows.
func checkTopLevel(t *Tree) []Finding {
	var findings []Finding
	for _, entry := range t.TopLevel {
		if !slices.Contains(topLevel, entry) {
			findings = append(findings, Finding{
				Path: strings.TrimSuffix(entry, "/"), Line: 1,
				Text: entry + " has no place at the top level: move it below " + strings.Join(topLevel[:10], ", ") +
					", or add it to topLevel in names.go with the reason",
			})
		}
	}
	return findings
}
