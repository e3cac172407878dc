//go:build !race

// The race detector makes a minute of what takes two seconds here, and nothing of it
// runs concurrently.

package main

import (
	"os"
	"strings"
	"testing"
)

// TestPageIsUpToDate holds the rows of the page that are the same on every machine
// to the ring as it is now.
func TestPageIsUpToDate(t *testing.T) {
	page, err := os.ReadFile("../../docs/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, table := range map[string]func([]int) (string, error){"movement": movement, "spread": spread} {
		rows, err := table([]int{3, 10})
		if err != nil {
			t.Fatal(err)
		}
		begin, end := strings.Index(string(page), "<!-- table "+name+" -->"), strings.Index(string(page), "<!-- end of table "+name+" -->")
		if begin < 0 || end < begin {
			t.Fatalf("the page has no table %s", name)
		}
		for row := range strings.SplitSeq(strings.TrimSpace(rows), "\n") {
			if !strings.Contains(string(page[begin:end]), row+"\n") {
				t.Errorf("table %s lacks the row\n%s\nrun: go run ./tests/ringtables -out docs/routing.md", name, row)
			}
		}
	}
}

// TestTables makes the tables of times, small: they have a row for each size.
func TestTables(t *testing.T) {
	for name, table := range map[string]func([]int) (string, error){"lookup": lookups, "build": builds} {
		rows, err := table([]int{1, 3})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(rows, "\n"); got != 4 {
			t.Errorf("table %s has %d lines, want 4:\n%s", name, got, rows)
		}
	}
}
