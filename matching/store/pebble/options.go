package pebble

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Options configures a store. Zero fields take their default.
type Options struct {
	// Dir is the store's directory. It is created when it is missing; the store
	// owns all that is in it.
	Dir string
	// FS is the file system; the default is the operating system's.
	FS vfs.FS
	// CommitDeadline returns how long a commit may take before Healthy complains.
	// It is asked each time; the default is always 5 s.
	CommitDeadline func() time.Duration
	// CacheBytes is the size of the cache of blocks read from files; default 64 MiB.
	CacheBytes int64
	// MemTableBytes is how much is gathered in memory before it is written to a
	// file; default 32 MiB. Up to memTables times as much is in use when the
	// disk is slow.
	MemTableBytes int64
	// Logger takes what the store has to say; the default writes text to
	// standard error.
	Logger *slog.Logger
	// OnFatal, when set, is told why the process is about to end with
	// ExitStoreBroken, after the reason was logged. It has one second.
	OnFatal func(reason string)
}

const (
	defaultCommitDeadline = 5 * time.Second
	defaultCacheBytes     = 64 << 20
	defaultMemTableBytes  = 32 << 20

	// memTables is how many memory tables may wait for their flush before
	// commits do.
	memTables = 4
	// slowDiskAfter is how long one call of the file system takes before it is
	// logged as slow.
	slowDiskAfter = 5 * time.Second
)

func (o *Options) ensureDefaults() error {
	var errs []error
	if o.Dir == "" {
		errs = append(errs, errors.New("the store needs a directory"))
	}
	if o.CacheBytes < 0 || o.MemTableBytes < 0 {
		errs = append(errs, fmt.Errorf("cache %d bytes, memory table %d bytes: neither may be negative", o.CacheBytes, o.MemTableBytes))
	}
	if o.FS == nil {
		o.FS = vfs.Default
	}
	if o.CommitDeadline == nil {
		o.CommitDeadline = func() time.Duration { return defaultCommitDeadline }
	}
	if o.CacheBytes == 0 {
		o.CacheBytes = defaultCacheBytes
	}
	if o.MemTableBytes == 0 {
		o.MemTableBytes = defaultMemTableBytes
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return errors.Join(errs...)
}

// pebbleOptions returns the options that every store runs with, tests included:
// they swap the file system and nothing else. The package doc tells what was
// tried. The closer ends the watch over the disk, once the database is closed
// or could not be opened.
func (o *Options) pebbleOptions(d disk) (*pebbledb.Options, io.Closer) {
	watched, closer := vfs.WithDiskHealthChecks(d, slowDiskAfter, nil, d.log.diskSlow)
	po := &pebbledb.Options{
		FS: watched,
		// Fixed, so that a new version of the library does not write what the
		// previous version of the server cannot read.
		FormatMajorVersion: pebbledb.FormatValueSeparation,

		// Pebble takes its memory tables off the cache: one that fills and one
		// that is being flushed are given to it on top.
		CacheSize:                   o.CacheBytes + 2*o.MemTableBytes,
		MemTableSize:                uint64(o.MemTableBytes),
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       4,
		L0StopWritesThreshold:       24,
		CompactionConcurrencyRange:  func() (lower, upper int) { return 1, 2 },
		BytesPerSync:                1 << 20,
		WALBytesPerSync:             0, // every commit syncs

		Logger:        d.log,
		EventListener: d.log.listener(d.background),
	}
	for i := range po.Levels {
		po.Levels[i].FilterPolicy = bloom.FilterPolicy(10)
		po.Levels[i].Compression = func() *block.CompressionProfile { return block.FastestCompression }
	}
	return po, closer
}
