package dynamicconfig

import (
	"errors"
	"testing"
)

// TestPlaceOfForbiddenCharacters: the YAML library tells no place of characters
// that it does not take.
func TestPlaceOfForbiddenCharacters(t *testing.T) {
	r := registry(t)
	for name, tc := range map[string]struct {
		content      string
		line, column int
	}{
		"control":          {"node.debug: true\n# \u00fc\x01\n", 2, 4},
		"nul":              {"node.debug: true\x00\n", 1, 17},
		"del":              {"node.debug: true\n\nnode.banner: \x7f\n", 3, 14},
		"not UTF-8":        {"node.debug: true\nnode.banner: \xff\n", 2, 14},
		"half a character": {"node.debug: true\nnode.banner: \xc3", 2, 14},
		"alias":            {"# it is none\nnode.banner: [a,*it]\n", 2, 17},
	} {
		_, err := r.Parse([]byte(tc.content))
		problems, ok := errors.AsType[Problems](err)
		if !ok || len(problems) != 1 || problems[0].Line != tc.line || problems[0].Column != tc.column {
			t.Errorf("%s: %v, want one problem at %d:%d", name, err, tc.line, tc.column)
		}
	}
}

func TestNumbersAreWrittenPlainly(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1e6: "1000000", -2.5: "-2.5", 0.0001: "0.0001", 1e-9: "1e-09", 1e20: "1e+20",
	} {
		if got := formatFloat(v); got != want {
			t.Errorf("%g is written %s, want %s", v, got, want)
		}
	}
}
