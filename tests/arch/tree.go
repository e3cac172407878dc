package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ModulePath is the import path of the project.
const ModulePath = "github.com/taskring/taskring"

// Limits are the sizes that the rules allow.
type Limits struct {
	// FileLines is the longest hand-written file, in lines.
	FileLines int
	// FunctionLines is the longest function, in lines from `func` to its brace.
	FunctionLines int
	// Parameters is the largest number of parameters; a leading context or
	// testing handle does not count.
	Parameters int
	// Methods is the widest interface, embedded ones of the same package included.
	Methods int
	// Nesting is the deepest nesting of control statements in a function;
	// one more is allowed with a written reason.
	Nesting int
}

// HouseLimits returns the limits that the project's own code is held to.
func HouseLimits() Limits {
	return Limits{FileLines: 500, FunctionLines: 80, Parameters: 4, Methods: 7, Nesting: 3}
}

// Tree is a source tree, parsed. It is read-only once loaded and may then be
// read by several goroutines.
type Tree struct {
	Limits   Limits
	Packages []*Package
	// Texts are all other text files and, again, the Go files: path to content.
	Texts map[string][]byte
	// TopLevel names what lies directly in the root; directories end in a slash.
	TopLevel []string

	fset *token.FileSet
}

// Package is one directory with Go files.
type Package struct {
	// Path is the directory relative to the root, "matching/task" for instance.
	Path  string
	Files []*File
}

// File is one Go file.
type File struct {
	// Path is relative to the root of the tree.
	Path string
	Test bool
	// Generated files carry the standard "Code generated" header.
	Generated bool
	// Lines is the number of lines.
	Lines  int
	Syntax *ast.File

	imports map[string]string // name in this file -> import path
}

// skippedDirs hold nothing that the project wrote: build results, local data,
// the repository itself.
var skippedDirs = []string{".git", "bin", "taskring-data", "node_modules"}

// Load parses the tree under root. Go files below a testdata directory are read
// as text only. An error means that a file could not be read or parsed.
func Load(root string, limits Limits) (*Tree, error) {
	t := &Tree{Limits: limits, Texts: map[string][]byte{}, fset: token.NewFileSet()}
	byDir := map[string]*Package{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return fmt.Errorf("%s lies outside %s: %w", name, root, err)
		}
		rel = filepath.ToSlash(rel)
		t.noteTopLevel(rel, entry)
		if entry.IsDir() {
			if slices.Contains(skippedDirs, rel) || entry.Name() == "node_modules" {
				return filepath.SkipDir
			}
			return nil
		}
		return t.addFile(byDir, name, rel)
	})
	if err != nil {
		return nil, fmt.Errorf("reading the tree: %w", err)
	}
	slices.SortFunc(t.Packages, func(a, b *Package) int { return strings.Compare(a.Path, b.Path) })
	return t, nil
}

// Position returns where pos lies, with a path relative to the root.
func (t *Tree) Position(pos token.Pos) token.Position { return t.fset.Position(pos) }

func (t *Tree) noteTopLevel(rel string, entry fs.DirEntry) {
	switch {
	case rel == "." || strings.Contains(rel, "/"):
	case entry.IsDir():
		t.TopLevel = append(t.TopLevel, rel+"/")
	default:
		t.TopLevel = append(t.TopLevel, rel)
	}
}

func (t *Tree) addFile(byDir map[string]*Package, name, rel string) error {
	content, err := os.ReadFile(name)
	if err != nil {
		return fmt.Errorf("reading %s: %w", rel, err)
	}
	if !bytes.Contains(content, []byte{0}) {
		t.Texts[rel] = content
	}
	if !strings.HasSuffix(rel, ".go") || slices.Contains(strings.Split(rel, "/"), "testdata") {
		return nil
	}
	syntax, err := parser.ParseFile(t.fset, rel, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing %s: %w", rel, err)
	}
	dir := path.Dir(rel)
	pkg := byDir[dir]
	if pkg == nil {
		pkg = &Package{Path: dir}
		byDir[dir] = pkg
		t.Packages = append(t.Packages, pkg)
	}
	pkg.Files = append(pkg.Files, newFile(rel, content, syntax))
	return nil
}

func newFile(rel string, content []byte, syntax *ast.File) *File {
	f := &File{
		Path:      rel,
		Test:      strings.HasSuffix(rel, "_test.go"),
		Generated: ast.IsGenerated(syntax),
		Lines:     bytes.Count(content, []byte("\n")),
		Syntax:    syntax,
		imports:   map[string]string{},
	}
	for _, spec := range syntax.Imports {
		importPath := importPathOf(spec)
		f.imports[importName(spec, importPath)] = importPath
	}
	return f
}

// importPathOf returns the unquoted path of an import. The parser has already
// refused a malformed one.
func importPathOf(spec *ast.ImportSpec) string {
	unquoted, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return spec.Path.Value
	}
	return unquoted
}

// importName returns the name by which a file calls an import: the given one or
// the last element of the path, the one before when that is a major version.
func importName(spec *ast.ImportSpec, importPath string) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	last := path.Base(importPath)
	if len(last) > 1 && last[0] == 'v' && strings.Trim(last[1:], "0123456789") == "" {
		last = path.Base(path.Dir(importPath))
	}
	return last
}

// selected returns the import path and the name of a selector such as time.Now,
// or "" when x does not select from an import.
func (f *File) selected(x ast.Expr) (importPath, name string) {
	sel, ok := x.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	id, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	return f.imports[id.Name], sel.Sel.Name
}

// all calls visit for each Go file.
func (t *Tree) all(visit func(*Package, *File)) {
	for _, pkg := range t.Packages {
		for _, file := range pkg.Files {
			visit(pkg, file)
		}
	}
}

// handWritten calls visit for each file that is not generated.
func (t *Tree) handWritten(visit func(*Package, *File)) {
	t.all(func(pkg *Package, file *File) {
		if !file.Generated {
			visit(pkg, file)
		}
	})
}

// production calls visit for each hand-written file that is part of a build.
func (t *Tree) production(visit func(*Package, *File)) {
	t.handWritten(func(pkg *Package, file *File) {
		if !file.Test {
			visit(pkg, file)
		}
	})
}
