package file

import (
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/fsnotify/fsnotify"
)

// watch turns what the system tells of the directories of a file into hints to
// look at the file.
type watch struct {
	path    string
	logger  *slog.Logger
	watcher *fsnotify.Watcher // nil when there is no notification
	watched map[string]bool   // directories; only renew uses it
}

func newWatch(path string, logger *slog.Logger) *watch {
	w := &watch{path: path, logger: logger, watched: map[string]bool{}}
	var err error
	if w.watcher, err = fsnotify.NewWatcher(); err != nil {
		logger.Warn("the system tells of no changes of files; the dynamic-config file is read now and then", "path", path, "error", err)
	}
	return w
}

// run hints until done is closed.
func (w *watch) run(done <-chan struct{}, hints chan<- struct{}) {
	if w.watcher == nil {
		return
	}
	defer func() { _ = w.watcher.Close() }() // nothing is left that could be told
	for {
		select {
		case <-done:
			return
		case event, ok := <-w.watcher.Events:
			if !ok {
				return
			}
			if !w.concerns(event) {
				continue
			}
		case err, ok := <-w.watcher.Errors: // notifications may have been lost
			if !ok {
				return
			}
			w.logger.Debug("a notification of the file system is wrong; the file is looked at", "path", w.path, "error", err)
		}
		select {
		case hints <- struct{}{}:
		default: // one is under way
		}
	}
}

// concerns tells whether an event may have changed the file. A directory can hold
// much else, such as a log that is written all the time.
func (w *watch) concerns(event fsnotify.Event) bool {
	if event.Op == fsnotify.Chmod {
		return false
	}
	name := filepath.Base(event.Name)
	return name == filepath.Base(w.path) || strings.HasPrefix(name, "..") || w.isTarget(name)
}

// isTarget reports whether the file is a link to something of that name.
func (w *watch) isTarget(name string) bool {
	target, err := filepath.EvalSymlinks(w.path)
	return err == nil && filepath.Base(target) == name
}

// renew watches the directories in which the file and what it links to lie now.
// A directory that was deleted and made again has to be watched anew, which the
// system does not tell: this is done at each look.
func (w *watch) renew() {
	if w.watcher == nil {
		return
	}
	wanted := map[string]bool{filepath.Dir(w.path): true}
	if target, err := filepath.EvalSymlinks(w.path); err == nil {
		wanted[filepath.Dir(target)] = true
	}
	for dir := range w.watched {
		if !wanted[dir] {
			_ = w.watcher.Remove(dir) // it is gone, or soon no one's concern
		}
	}
	for dir := range wanted {
		if err := w.watcher.Add(dir); err != nil {
			w.logger.Debug("a directory cannot be watched; it is tried again", "directory", dir, "error", err)
		}
	}
	w.watched = wanted
}
