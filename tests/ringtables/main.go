package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/taskring/taskring/tests/routesim"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "ringtables:", err)
		os.Exit(1)
	}
}

// sizes are the numbers of nodes that are measured, batches the batch sizes.
var (
	sizes   = []int{1, 3, 10, 50, 200}
	batches = []int32{0, 4, 8}
)

// run measures everything and writes the page; progress goes to log.
func run(args []string, log io.Writer) error {
	flags := flag.NewFlagSet("ringtables", flag.ContinueOnError)
	flags.SetOutput(log)
	page := flags.String("out", "docs/routing.md", "the page whose tables are written anew")
	only := flags.String("table", "", "the one table to write; all when not given")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	content, err := os.ReadFile(*page)
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}
	text, known := string(content), false
	for _, table := range []struct {
		name string
		make func() (string, error)
	}{
		{"movement", func() (string, error) { return movement(sizes) }},
		{"spread", func() (string, error) { return spread(sizes) }},
		{"lookup", func() (string, error) { return lookups(sizes) }},
		{"build", func() (string, error) { return builds(sizes) }},
		{"routing", routesim.Table},
	} {
		if *only != "" && *only != table.name {
			continue
		}
		known = true
		_, _ = fmt.Fprintln(log, table.name)
		rows, err := table.make()
		if err != nil {
			return fmt.Errorf("table %s: %w", table.name, err)
		}
		if text, err = replaced(text, table.name, rows); err != nil {
			return fmt.Errorf("page %s: %w", *page, err)
		}
	}
	if !known {
		return fmt.Errorf("there is no table %q", *only)
	}
	if err := os.WriteFile(*page, []byte(text), 0o600); err != nil { //nolint:gosec // whoever runs it names the page
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// replaced returns the page with other rows between the two marks of a table.
func replaced(page, name, rows string) (string, error) {
	begin, end := "<!-- table "+name+" -->\n", "<!-- end of table "+name+" -->\n"
	before, rest, ok := strings.Cut(page, begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", fmt.Errorf("it lacks the lines %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + begin + rows + end + after, nil
}
