// Package arch holds the house rules of the project as tests.
//
// A rule that stands only in prose is forgotten in the first hurried week, so
// every rule about layout, imports, size, documentation and tests is a function
// here: it reads the syntax of the whole tree and returns findings, each of
// which says where the rule is broken, what it asks for and how to mend it.
//
// # Map
//
//	levels.go     the table of packages and their levels, and who may use which library: data only
//	tree.go       reads a source tree into a Tree: syntax only, no type checking, no build
//	rule.go       Rule, Finding and the list of all rules
//	imports.go    the rules that compare imports with the tables
//	purity.go     what the pure packages of levels 0 and 1 may not do
//	names.go      names of packages, types, files and of the top level
//	documents.go  package comments and doc comments
//	size.go       lengths, parameters, interface widths, nesting
//	tests.go      what tests may not do: real sleeps, fixed ports, mocks
//	text.go       words that no file of the tree may hold
//	stats.go      the figures that `make stats` prints
//
// # How a rule is added
//
// Write a function from *Tree to []Finding, add it to Rules, and give it a bad
// example: a small tree under testdata/<rule>/ in which each offending line ends
// in a comment `want "regular expression"`. The example test refuses a rule
// without an example, a finding that no comment asked for and a comment that no
// finding answered, so the lines without a comment show what is allowed.
//
// # Exceptions
//
// A line of its own in a function's doc comment,
//
//	//arch:allow nesting the reason, in words
//
// allows that function one level of nesting more. //arch:bubble, likewise with
// a reason, says that a function runs only inside a synctest bubble, where a
// sleep is virtual. No other rule has exceptions: what needs one belongs into
// the tables of levels.go, beside its reason.
//
// # Limits
//
// The rules read syntax and resolve a selector such as time.Now by the imports
// of its file. A dot import would escape them, and so would a local variable
// that takes a package's name; the first is refused by lint, the second has to
// be avoided. Generated files (first comment "Code generated ... DO NOT EDIT.")
// are held to the import rules between the project's own packages only.
package arch
