package arch

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// fewestWords is the shortest package comment, in words; a shorter one only
// repeats the name.
const fewestWords = 8

// settingsNames are structs whose every exported field needs a comment, with
// its unit and default: callers fill them without reading the code.
var settingsNames = []string{"Config", "Settings", "Options", "Params"}

// docLink is a link to a type of another package.
var docLink = regexp.MustCompile(`\[\*?\w+\.\w+(\.\w+)?\]`)

// checkPackageDoc wants one package comment in every package.
func checkPackageDoc(t *Tree) []Finding {
	c := collector{tree: t}
	for _, pkg := range t.Packages {
		var documented []*File
		for _, file := range pkg.Files {
			if file.Syntax.Doc != nil && !file.Generated {
				documented = append(documented, file)
			}
		}
		switch {
		case len(documented) == 0:
			c.addf(pkg.Files[0].Syntax.Package,
				"package %s has no package comment: say in one sentence what its single job is, then what a stranger needs", pkg.Path)
		case len(strings.Fields(documented[0].Syntax.Doc.Text())) < fewestWords:
			c.addf(documented[0].Syntax.Package,
				"the package comment of %s is too short to tell a stranger anything: say what it does, for whom, and what holds", pkg.Path)
		}
		for _, file := range documented[min(1, len(documented)):] {
			c.addf(file.Syntax.Package, "package %s has a second package comment: keep the one in %s", pkg.Path, documented[0].Path)
		}
	}
	return c.findings
}

// checkExportedDoc wants a doc comment on every exported name of production
// code: constants, variables, types, functions, methods of exported types and
// of exported interfaces, fields of settings. A comment on a group of constants
// or variables covers the group.
func checkExportedDoc(t *Tree) []Finding {
	c := collector{tree: t}
	t.production(func(_ *Package, file *File) {
		for _, decl := range file.Syntax.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				c.checkFuncDoc(decl)
			case *ast.GenDecl:
				c.checkGenDoc(decl)
			}
		}
	})
	return c.findings
}

func (c *collector) checkFuncDoc(decl *ast.FuncDecl) {
	if decl.Doc == nil && (decl.Recv == nil || ast.IsExported(receiverName(decl))) {
		c.missingDoc("what it does, its units and errors, and who may call it concurrently", decl.Name)
	}
}

func (c *collector) checkGenDoc(decl *ast.GenDecl) {
	if decl.Tok == token.IMPORT {
		return
	}
	grouped := decl.Doc != nil
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if !grouped && spec.Doc == nil && spec.Comment == nil {
				c.missingDoc("what it is, and what its zero value means", spec.Name)
			}
			c.checkMembers(decl, spec)
		case *ast.ValueSpec:
			if !grouped && spec.Doc == nil && spec.Comment == nil {
				c.missingDoc("what it means and its unit", spec.Names...)
			}
		}
	}
}

// checkMembers looks at the methods of an exported interface and at the fields
// of exported settings. An interface that is a part of another one only says so
// by a link, as in "the part of [store.Store] that the lanes need".
func (c *collector) checkMembers(decl *ast.GenDecl, spec *ast.TypeSpec) {
	if !spec.Name.IsExported() {
		return
	}
	switch typ := spec.Type.(type) {
	case *ast.InterfaceType:
		if !docLink.MatchString(decl.Doc.Text()) && !docLink.MatchString(spec.Doc.Text()) {
			c.checkFields(typ.Methods, "what it promises, and who may keep what it is given, or link in the interface's "+
				"comment to the type where that stands")
		}
	case *ast.StructType:
		isSettings := func(name string) bool { return strings.HasSuffix(spec.Name.Name, name) }
		if slices.ContainsFunc(settingsNames, isSettings) {
			c.checkFields(typ.Fields, "its unit, its default and what it bounds")
		}
	}
}

func (c *collector) checkFields(list *ast.FieldList, what string) {
	for _, field := range list.List {
		if field.Doc == nil && field.Comment == nil {
			c.missingDoc(what, field.Names...)
		}
	}
}

// missingDoc records those of the undocumented names that are exported.
func (c *collector) missingDoc(what string, names ...*ast.Ident) {
	for _, name := range names {
		if name.IsExported() {
			c.addf(name.Pos(), "exported name %s has no doc comment: say %s", name.Name, what)
		}
	}
}

// receiverName returns the type name of a method's receiver.
func receiverName(decl *ast.FuncDecl) string {
	expr := decl.Recv.List[0].Type
	for {
		switch x := expr.(type) {
		case *ast.StarExpr:
			expr = x.X
		case *ast.IndexExpr:
			expr = x.X
		case *ast.IndexListExpr:
			expr = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
