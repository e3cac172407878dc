package main

import (
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
