package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/taskring/taskring/cmd/taskring/child"
)

// stopTimeout bounds the end of the own server.
const stopTimeout = 30 * time.Second

// ownServer is a server process on a temporary directory.
type ownServer struct {
	*child.Server

	dir string
}

func startOwn(ctx context.Context, stderr io.Writer) (*ownServer, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding the binary to start a server: %w", err)
	}
	dir, err := os.MkdirTemp("", "taskring-bench-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for the server: %w", err)
	}
	if inMemory(dir) {
		_, _ = fmt.Fprintf(stderr, "%s is in memory, where a sync costs nothing: set TMPDIR to a directory on a disk\n", dir)
	}
	server, err := child.Start(ctx, binary, "--data-dir", filepath.Join(dir, "data"), "--log-level", "warn")
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &ownServer{server, dir}, nil
}

// stop ends the server and removes what it stored.
func (s *ownServer) stop() error {
	return errors.Join(s.Stop(stopTimeout), os.RemoveAll(s.dir))
}

// inMemory reports whether a directory is on a tmpfs.
func inMemory(dir string) bool {
	var stat unix.Statfs_t
	return unix.Statfs(dir, &stat) == nil && stat.Type == unix.TMPFS_MAGIC
}
