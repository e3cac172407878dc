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
	listed := reliability(t)
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
		if !strings.Contains(listed, b.Name) {
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

// mustBeFound puts one break into the copy, demands that its test fails, and
// mends the copy.
func mustBeFound(t *testing.T, tree *os.Root, b Break) {
	t.Helper()
	good, err := tree.ReadFile(b.File)
	if err != nil {
		t.Fatal(err)
	}
	defer write(t, tree, b.File, good)
	write(t, tree, b.File, []byte(strings.Replace(string(good), b.Old, b.New, 1)))

	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	//nolint:gosec // package and test come from the table
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-timeout=90s", "-run", b.Test, b.Package)
	cmd.Dir = tree.Name()
	out, err := cmd.CombinedOutput()
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		t.Errorf("%s passes all the same:\n%s", b.Test, out)
	case !exited, strings.Contains(string(out), "build failed"):
		t.Errorf("the broken tree could not be tested: %v\n%s", err, out)
	case !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic:"):
		t.Errorf("it failed for another reason than its test: %v\n%s", err, out)
	}
}

// copyTree copies what is needed to build and test the module.
func copyTree(t *testing.T) *os.Root {
	t.Helper()
	from, to := open(t, top), open(t, t.TempDir())
	err := fs.WalkDir(from.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !d.IsDir():
			return copyFile(from, to, path)
		case path != "." && unneeded(d.Name()):
			return fs.SkipDir
		default:
			return to.MkdirAll(path, 0o700)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// unneeded reports whether a folder holds nothing that a build or a test reads.
func unneeded(folder string) bool {
	return strings.HasPrefix(folder, ".") || folder == "bin" || folder == "taskring-data"
}

func copyFile(from, to *os.Root, path string) error {
	text, err := from.ReadFile(path)
	if err != nil {
		return err
	}
	return to.WriteFile(path, text, 0o600)
}

// open opens a folder until the end of the test.
func open(t *testing.T, folder string) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	return root
}

func write(t *testing.T, tree *os.Root, path string, text []byte) {
	t.Helper()
	if err := tree.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
