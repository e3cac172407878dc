package main

import (
	"os"
	"strings"
	"testing"
)

func TestReplaced(t *testing.T) {
	page := "text\n<!-- table a -->\nold\nrows\n<!-- end of table a -->\nmore\n"
	got, err := replaced(page, "a", "new\n")
	if want := "text\n<!-- table a -->\nnew\n<!-- end of table a -->\nmore\n"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", "<!-- table a -->\n", "<!-- end of table a -->\n<!-- table a -->\n"} {
		if _, err := replaced(bad, "a", ""); err == nil || !strings.Contains(err.Error(), "<!-- table a -->") {
			t.Errorf("%q: error %v does not name what is missing", bad, err)
		}
	}
}

func TestUnknownTable(t *testing.T) {
	page := t.TempDir() + "/page.md"
	if err := os.WriteFile(page, []byte("text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	if err := run([]string{"-out", page, "-table", "chairs"}, &log); err == nil || !strings.Contains(err.Error(), "chairs") {
		t.Errorf("error %v does not name the table", err)
	}
}
