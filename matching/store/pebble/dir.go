package pebble

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkDir refuses a directory that holds things but no database: a path that was
// mistyped must not be filled with files, nor should Pebble clean up in it. What
// a creation that was broken off leaves behind is no reason to refuse.
func checkDir(files vfs.FS, dir string) error {
	names, err := files.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is going to be made
	}
	if err != nil {
		return err
	}
	stranger := ""
	for _, name := range names {
		switch {
		case strings.HasPrefix(name, "marker.manifest."):
			return nil // Pebble's way to say that there is a database
		case !ours.MatchString(name):
			stranger = name
		}
	}
	if stranger == "" {
		return nil
	}
	return fmt.Errorf("%w: it is not empty, %q is in it; name an empty directory, or one that does not exist yet", ErrNotAStore, stranger)
}

// ours are the files that may stand in a directory where a database was about to
// be created. lost+found is in the root of every file system.
var ours = regexp.MustCompile(`^(LOCK|lost\+found|marker\..+|(MANIFEST|OPTIONS)-[0-9]+|[0-9]+\.(log|sst|blob|dbtmp))$`)
