package arch

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
)

// Finding is one place where a rule is broken.
type Finding struct {
	// Path is relative to the root of the tree, with forward slashes.
	Path string
	// Line counts from 1.
	Line int
	// Text says what is wrong and what would be right.
	Text string
}

// String returns "path:line: text", which editors know how to open.
func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.Text) }

// Rule is one house rule. Its name is also the name of its example under testdata.
type Rule struct {
	Name string
	// Check returns every place of the tree where the rule is broken, in any
	// order. It may not change the tree.
	Check func(*Tree) []Finding
}

// Rules returns every house rule, in the order in which the package's map lists them.
func Rules() []Rule {
	return []Rule{
		{"table", checkTable},
		{"imports", checkImports},
		{"fences", checkFences},
		{"libraries", checkLibraries},
		{"files", checkFileCalls},
		{"purity", checkPurity},
		{"goroutines", checkGoroutines},
		{"names", checkNames},
		{"toplevel", checkTopLevel},
		{"packagedoc", checkPackageDoc},
		{"exporteddoc", checkExportedDoc},
		{"filelength", checkFileLength},
		{"functionlength", checkFunctionLength},
		{"parameters", checkParameters},
		{"interfaces", checkInterfaces},
		{"nesting", checkNesting},
		{"sleeps", checkSleeps},
		{"ports", checkPorts},
		{"mocks", checkMocks},
		{"testing", checkTestingImport},
		{"text", checkText},
	}
}

// collector gathers the findings of one rule.
type collector struct {
	tree     *Tree
	findings []Finding
}

// addf records a finding at pos.
func (c *collector) addf(pos token.Pos, format string, args ...any) {
	p := c.tree.Position(pos)
	c.findings = append(c.findings, Finding{Path: p.Filename, Line: p.Line, Text: fmt.Sprintf(format, args...)})
}

// sorted returns the findings by place, which keeps reports stable.
func sorted(findings []Finding) []Finding {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	return findings
}
