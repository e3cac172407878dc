package dynamicconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a file, or to be warned of.
type Problem struct {
	Line   int    // from 1; 0 = the file as a whole
	Column int    // from 1; 0 = not known
	Key    string // of the setting; empty when it concerns none
	Text   string // what is wrong and what would be right
}

// String returns "line 3, column 5: key: text".
func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d", p.Line)
		if p.Column > 0 {
			fmt.Fprintf(&b, ", column %d", p.Column)
		}
		b.WriteString(": ")
	}
	b.WriteString(p.Message())
	return b.String()
}

// Message returns the problem without its place.
func (p Problem) Message() string {
	if p.Key == "" {
		return p.Text
	}
	return p.Key + ": " + p.Text
}

// Problems is everything that is wrong with a file, by place. It is the error of
// [Registry.Parse].
type Problems []Problem //nolint:errname // it is a list before it is an error

// Error returns one line a problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sorted returns the problems by place, each once: what stands at an anchor is met
// again at every alias.
func (ps Problems) sorted() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(ps)
}
