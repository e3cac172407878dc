package breaks

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const top = "../.."

// TestBreaksAreInPlace keeps the table true: each line is in its file, once.
func TestBreaksAreInPlace(t *testing.T) {
	names := make(map[string]bool)
	for _, b := range All() {
		if names[b.Name] {
			t.Errorf("%s: listed twice", b.Name)
		}
		names[b.Name] = true
		text, err := os.ReadFile(filepath.Join(top, b.File))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), b.Old); n != 1 {
			t.Errorf("%s: the line to break stands %d times in %s, want once", b.Name, n, b.File)
		}
		if !strings.Contains(reliability(t), b.Name) {
			t.Errorf("%s: docs/reliability.md does not list it", b.Name)
		}
	}
}

func reliability(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, "docs/reliability.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestBreaksAreFound applies each break to a copy of the tree and runs the test
// that must find it.
func TestBreaksAreFound(t *testing.T) {
	if os.Getenv("TASKRING_LONG") == "" {
		t.Skip("builds the server once for each break; make test-long runs it")
	}
	tree := copyTree(t)
	for _, b := range All() {
		t.Run(b.Name, func(t *testing.T) { mustBeFound(t, tree, b) })
	}
}

func mustBeFound(t *testing.T, tree string, b Break) {
	path := filepath.Join(tree, b.File)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer write(t, path, good)
	write(t, path, []byte(strings.Replace(string(good), b.Old, b.New, 1)))

	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=90s", "-run", b.Test, b.Package)
	cmd.Dir = tree
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		t.Errorf("%s passes all the same:\n%s", b.Test, out)
	case !errors.As(err, &exit), strings.Contains(string(out), "build failed"):
		t.Errorf("the broken tree could not be tested: %v\n%s", err, out)
	case !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic:"):
		t.Errorf("it failed for another reason than its test: %v\n%s", err, out)
	}
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// copyTree copies what is needed to build and test the module.
func copyTree(t *testing.T) string {
	t.Helper()
	to := t.TempDir()
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); rel != "." && (strings.HasPrefix(name, ".") || name == "bin" || name == "taskring-data") {
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}
