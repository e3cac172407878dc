package backlog

import (
	"os"
	"path/filepath"
)

func read() string {
	os.ReadFile("rows")      // want "matching/backlog may not call os.ReadFile: files belong to the stores"
	filepath.Glob("*.rows")  // want "may not call path/filepath.Glob"
	return filepath.Join("a", os.Getenv("NAME"))
}
