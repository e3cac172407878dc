// Command stats prints the quick numbers of a source tree: sizes, widths,
// goroutines by package, the ratio of test to code and the findings of every
// house rule. It judges nothing: the tests of the package above do.
//
// Usage: stats [DIR], where DIR is the root of the tree, by default the
// current directory. It exits 1 when the tree cannot be read.
package main

import (
	"fmt"
	"os"

	"github.com/taskring/taskring/tests/arch"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	if err := run(root); err != nil {
		fmt.Fprintln(os.Stderr, "stats:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	tree, err := arch.Load(root, arch.HouseLimits())
	if err != nil {
		return err
	}
	_, err = arch.Measured(tree).WriteTo(os.Stdout)
	return err
}
