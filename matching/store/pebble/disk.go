package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// disk is the file system that Pebble sees: the one of the options, with four
// changes, each at its method.
//
// The greatest one is that an error of the write-ahead log ends the process
// right where it happens. Pebble would carry it to the commits, or panic, in
// places with locks half released where no recover helps: the process would end
// all the same, but with another status and without a reason.
type disk struct {
	vfs.FS
	log *logger
	// armed is set while the store is open. An error before that is Open's to
	// return, one after that Close's.
	armed      *atomic.Bool
	background *background
}

func newDisk(o *Options, log *logger) disk {
	return disk{o.FS, log, new(atomic.Bool), newBackground()}
}

// Lock locks a file against other processes, and gives the failure a name:
// below, each file system has its own error for it.
func (d disk) Lock(name string) (io.Closer, error) {
	c, err := d.FS.Lock(name)
	var path *fs.PathError
	if err != nil && !errors.As(err, &path) { // the file is there, but the lock is not to be had
		return nil, fmt.Errorf("%w: %w", ErrLocked, err)
	}
	return c, err
}

// Create creates a file. A table has to wait a while when the flush or
// compaction that it is for has failed before. The directory entry of a manifest is
// made durable at once: Pebble syncs it together with the entry of the marker that names the
// manifest, and a file system that reorders the two could leave, after a loss
// of power, a marker that names nothing.
func (d disk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	base := d.PathBase(name)
	if isTableName(base) {
		d.background.rest()
	}
	f, err := d.FS.Create(name, category)
	switch {
	case isLogName(base):
		return d.logFile(f, name, err)
	case err != nil || !strings.HasPrefix(base, "MANIFEST-"):
		return f, err
	}
	dir, err := d.FS.OpenDir(d.PathDir(name))
	if err == nil {
		err = errors.Join(dir.Sync(), dir.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("sync the directory of %s: %w", name, err), f.Close())
	}
	return f, nil
}

// ReuseForWrite makes an old log a new one.
func (d disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(oldname, newname, category)
	return d.logFile(f, newname, err) // only logs are used again
}

// OpenDir opens a directory. Its sync makes a new log exist.
func (d disk) OpenDir(name string) (vfs.File, error) {
	f, err := d.FS.OpenDir(name)
	return d.logFile(f, name, err)
}

// check ends the process if err is an error of the write-ahead log.
func (d disk) check(err error, doing, name string) error {
	if err != nil && d.armed.Load() {
		d.log.fatal(fmt.Sprintf("%s %s: %v", doing, name, err))
	}
	return err
}

func (d disk) logFile(f vfs.File, name string, err error) (vfs.File, error) {
	if d.check(err, "open", name) != nil {
		return nil, err
	}
	return logFile{f, d, name}, nil
}

func isLogName(base string) bool { return strings.HasSuffix(base, ".log") }

// isTableName tells the files that flushes and compactions write.
func isTableName(base string) bool {
	return strings.HasSuffix(base, ".sst") || strings.HasSuffix(base, ".blob")
}

// logFile is a file whose errors end the process.
type logFile struct {
	vfs.File
	disk disk
	name string
}

// Write appends to the file.
func (f logFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, f.disk.check(err, "write", f.name)
}

// Sync makes the file durable.
func (f logFile) Sync() error { return f.disk.check(f.File.Sync(), "sync", f.name) }

// SyncData makes the file's contents durable.
func (f logFile) SyncData() error { return f.disk.check(f.File.SyncData(), "sync", f.name) }

// SyncTo makes a part of the file's contents durable.
func (f logFile) SyncTo(length int64) (full bool, err error) {
	full, err = f.File.SyncTo(length)
	return full, f.disk.check(err, "sync", f.name)
}
