package arch

import (
	"go/ast"
	"strings"
)

// checkFileLength wants hand-written files short.
func checkFileLength(t *Tree) []Finding {
	c := collector{tree: t}
	t.handWritten(func(_ *Package, file *File) {
		if file.Lines > t.Limits.FileLines {
			c.addf(file.Syntax.Package, "the file has %d lines, the limit is %d: split it by idea, not by length",
				file.Lines, t.Limits.FileLines)
		}
	})
	return c.findings
}

// checkFunctionLength wants functions short.
func checkFunctionLength(t *Tree) []Finding {
	c := collector{tree: t}
	eachFunction(t, func(_ *File, decl *ast.FuncDecl) {
		if lines := functionLines(t, decl); lines > t.Limits.FunctionLines {
			c.addf(decl.Name.Pos(), "%s has %d lines, the limit is %d: name its steps and make them functions",
				decl.Name.Name, lines, t.Limits.FunctionLines)
		}
	})
	return c.findings
}

// eachFunction calls visit for each function and method of hand-written files.
func eachFunction(t *Tree, visit func(*File, *ast.FuncDecl)) {
	t.handWritten(func(_ *Package, file *File) {
		for _, decl := range file.Syntax.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				visit(file, fn)
			}
		}
	})
}

// functionLines counts from `func` to the closing brace.
func functionLines(t *Tree, decl *ast.FuncDecl) int {
	return t.Position(decl.End()).Line - t.Position(decl.Pos()).Line + 1
}

// checkParameters wants few parameters, of functions, methods and the methods
// of interfaces. Function literals are free: whom they are given to decides.
func checkParameters(t *Tree) []Finding {
	c := collector{tree: t}
	eachFunction(t, func(file *File, decl *ast.FuncDecl) {
		c.checkParameters(file, decl.Name, decl.Type)
	})
	t.handWritten(func(_ *Package, file *File) {
		eachTypeSpec(file, func(_ *ast.GenDecl, spec *ast.TypeSpec) {
			iface, ok := spec.Type.(*ast.InterfaceType)
			if !ok {
				return
			}
			for _, method := range iface.Methods.List {
				if signature, ok := method.Type.(*ast.FuncType); ok && len(method.Names) == 1 {
					c.checkParameters(file, method.Names[0], signature)
				}
			}
		})
	})
	return c.findings
}

func (c *collector) checkParameters(file *File, name *ast.Ident, signature *ast.FuncType) {
	if n := countParameters(file, signature); n > c.tree.Limits.Parameters {
		c.addf(name.Pos(), "%s takes %d parameters, the limit is %d: gather them in a struct whose fields are documented",
			name.Name, n, c.tree.Limits.Parameters)
	}
}

// countParameters counts all but the leading context and testing handle.
func countParameters(file *File, signature *ast.FuncType) int {
	count := 0
	for _, field := range signature.Params.List {
		if count == 0 && isHandle(file, field.Type) {
			continue
		}
		count += max(1, len(field.Names))
	}
	return count
}

// isHandle reports whether a parameter's type is one that by custom comes first
// and says nothing about the function.
func isHandle(file *File, typ ast.Expr) bool {
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	switch importPath, name := file.selected(typ); importPath {
	case "context":
		return name == "Context"
	case "testing":
		return name == "T" || name == "B" || name == "F" || name == "TB"
	case "pgregory.net/rapid":
		return name == "T"
	}
	return false
}

// checkInterfaces wants narrow interfaces.
func checkInterfaces(t *Tree) []Finding {
	c := collector{tree: t}
	for _, pkg := range t.Packages {
		declared := interfacesOf(pkg)
		for _, spec := range declared {
			if width := interfaceWidth(declared, spec, 0); width > t.Limits.Methods {
				c.addf(spec.Pos(), "interface %s has %d methods, the limit is %d: let each user declare the few that it calls",
					spec.Name.Name, width, t.Limits.Methods)
			}
		}
	}
	return c.findings
}

// interfacesOf returns the interfaces of a package's hand-written files by name.
func interfacesOf(pkg *Package) map[string]*ast.TypeSpec {
	declared := map[string]*ast.TypeSpec{}
	for _, file := range pkg.Files {
		if file.Generated {
			continue
		}
		eachTypeSpec(file, func(_ *ast.GenDecl, spec *ast.TypeSpec) {
			if _, ok := spec.Type.(*ast.InterfaceType); ok {
				declared[spec.Name.Name] = spec
			}
		})
	}
	return declared
}

// interfaceWidth counts methods, those of embedded interfaces of the package
// included. An embedded interface of another package counts as one.
func interfaceWidth(declared map[string]*ast.TypeSpec, spec *ast.TypeSpec, depth int) int {
	iface, ok := spec.Type.(*ast.InterfaceType)
	if !ok || depth > len(declared) {
		return 0
	}
	width := 0
	for _, field := range iface.Methods.List {
		switch typ := field.Type.(type) {
		case *ast.FuncType:
			width++
		case *ast.Ident:
			if embedded, ok := declared[typ.Name]; ok {
				width += interfaceWidth(declared, embedded, depth+1)
			}
		case *ast.SelectorExpr:
			width++
		}
	}
	return width
}

// checkNesting wants control statements nested little. An else-if continues its
// if, and a function literal starts afresh.
func checkNesting(t *Tree) []Finding {
	c := collector{tree: t}
	eachFunction(t, func(_ *File, decl *ast.FuncDecl) {
		if decl.Body == nil {
			return
		}
		limit := t.Limits.Nesting
		if hasDirective(decl, "arch:allow nesting") {
			limit++
		}
		if depth, deepest := nesting(decl.Body); depth > limit {
			c.addf(deepest.Pos(), "%s nests %d control statements, the limit is %d: return early or name the inner step "+
				"(one more is allowed with //arch:allow nesting REASON)", decl.Name.Name, depth, limit)
		}
	})
	return c.findings
}

// hasDirective reports whether a function's doc holds a directive followed by a
// reason.
func hasDirective(decl *ast.FuncDecl, directive string) bool {
	if decl.Doc == nil {
		return false
	}
	for _, line := range decl.Doc.List {
		if reason, ok := strings.CutPrefix(line.Text, "//"+directive+" "); ok && strings.TrimSpace(reason) != "" {
			return true
		}
	}
	return false
}

// nesting returns the depth of the deepest control statement, and that
// statement.
func nesting(body ast.Node) (int, ast.Node) {
	depth, deepest := 0, body
	var visit func(n ast.Node, outside int)
	visit = func(n ast.Node, outside int) {
		ast.Inspect(n, func(child ast.Node) bool {
			if child == n || child == nil {
				return true
			}
			inside, ok := nestedDepth(n, child, outside)
			if !ok {
				return true
			}
			if inside > depth {
				depth, deepest = inside, child
			}
			visit(child, inside)
			return false
		})
	}
	visit(body, 0)
	return depth, deepest
}

// nestedDepth returns the depth of a child that counts for nesting, and false
// for one that does not.
func nestedDepth(parent, child ast.Node, outside int) (int, bool) {
	switch child := child.(type) {
	case *ast.FuncLit:
		return 0, true
	case *ast.IfStmt:
		if outer, ok := parent.(*ast.IfStmt); ok && outer.Else == child {
			return outside, true
		}
		return outside + 1, true
	case *ast.ForStmt, *ast.RangeStmt, *ast.SwitchStmt, *ast.TypeSwitchStmt, *ast.SelectStmt:
		return outside + 1, true
	}
	return 0, false
}
