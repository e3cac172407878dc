package dynamicconfig

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/taskring/taskring/partition"
)

// FuzzParse: whatever a file holds, it is taken whole or refused with a place in
// it, twice in the same way, and what is taken obeys the bounds.
func FuzzParse(f *testing.F) {
	for _, script := range []string{"testdata/mistakes", "testdata/form"} {
		content, err := os.ReadFile(script)
		if err != nil {
			f.Fatal(err)
		}
		for part := range strings.SplitSeq(string(content), "load\n") {
			before, _, _ := strings.Cut(part, "----\n")
			f.Add([]byte(before))
		}
	}
	r := registry(f)
	f.Fuzz(func(t *testing.T, content []byte) {
		s, err := r.Parse(content)
		again, errAgain := r.Parse(content)
		if err != nil {
			checkRefusal(t, content, err)
			if errAgain == nil || err.Error() != errAgain.Error() {
				t.Fatalf("refused in two ways:\n%v\n%v", err, errAgain)
			}
			return
		}
		if d := Diff(s, again); len(d) > 0 || s.Hash() != again.Hash() {
			t.Fatalf("read in two ways: %v", d)
		}
		for _, e := range s.Entries() {
			q := e.Constraints.Queue()
			if n := writes.Get(s, q); n < 1 || n > 1000 {
				t.Fatalf("%d partitions got past the bounds", n)
			}
			if d := wait.Get(s, queueOf("a", "b", partition.Workflow)); d <= 0 {
				t.Fatalf("a poll of %v got past the bounds", d)
			}
		}
	})
}

func checkRefusal(t *testing.T, content []byte, err error) {
	t.Helper()
	var problems Problems
	if !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("refused without a problem: %v", err)
	}
	// YAML knows more line ends than \n: \r, and in UTF-8 NEL, LS and PS; and it
	// reads UTF-16. So the bytes bound the lines.
	for _, p := range problems {
		if p.Line < 1 || p.Line > len(content)+2 || p.Column < 0 || p.Text == "" {
			t.Fatalf("a problem without a place or a text: %+v", p)
		}
	}
}
