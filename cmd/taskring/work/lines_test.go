package work

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// TestTaskOutput cuts a text at random and compares what arrives, and how it
// was written.
func TestTaskOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.StringMatching(`[ab\n]{0,20}`)).Draw(t, "parts")
		var w wholeLines
		o := &taskOutput{shared: &lines{w: &w}}
		for _, part := range parts {
			if n, err := o.Write([]byte(part)); n != len(part) || err != nil {
				t.Fatalf("Write gives %d, %v", n, err)
			}
		}
		if err := o.flush(); err != nil {
			t.Fatal(err)
		}
		want := strings.Join(parts, "")
		if want != "" && !strings.HasSuffix(want, "\n") {
			want += "\n"
		}
		if got := w.all.String(); got != want {
			t.Fatalf("%q came out as %q", parts, got)
		}
		if w.cut {
			t.Fatalf("%q was written with a line in two pieces", parts)
		}
	})
}

// wholeLines notes whether a write ended within a line.
type wholeLines struct {
	all bytes.Buffer
	cut bool
}

func (w *wholeLines) Write(p []byte) (int, error) {
	w.cut = w.cut || !bytes.HasSuffix(p, []byte{'\n'})
	return w.all.Write(p)
}

// TestLinesNeverInterleave has tasks write lines in small pieces at the same
// time, some of them too long to be kept back.
func TestLinesNeverInterleave(t *testing.T) {
	const tasks, each, long = 8, 30, heldLine + heldLine/2
	var w bytes.Buffer
	shared := &lines{w: &w}
	var running sync.WaitGroup
	for task := range tasks {
		running.Go(func() {
			o := &taskOutput{shared: shared}
			for line := range each {
				text := strings.Repeat(string(rune('a'+task)), 10+line)
				if line == each/2 {
					text = strings.Repeat(string(rune('a'+task)), long)
				}
				for begin := 0; begin < len(text); {
					end := min(len(text), begin+max(3, len(text)/7))
					_, _ = fmt.Fprint(o, text[begin:end])
					begin = end
				}
				if line < each-1 {
					_, _ = fmt.Fprint(o, "\n")
				}
			}
			if err := o.flush(); err != nil {
				t.Error(err)
			}
		})
	}
	running.Wait()
	count := 0
	for line := range strings.Lines(w.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Trim(line, line[:1]) != "" {
			t.Fatalf("a line holds output of several tasks: %.80s", line)
		}
		count++
	}
	if count != tasks*each {
		t.Errorf("%d lines came out, want %d", count, tasks*each)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	kept := &tail{limit: 5}
	for _, part := range []string{"abc", "", "defg", "hi"} {
		_, _ = kept.Write([]byte(part))
	}
	if got := string(kept.end); got != "efghi" {
		t.Errorf("kept %q, want %q", got, "efghi")
	}
	_, _ = kept.Write([]byte("0123456789"))
	if got := string(kept.end); got != "56789" {
		t.Errorf("kept %q, want %q", got, "56789")
	}
}
