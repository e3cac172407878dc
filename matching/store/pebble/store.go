package pebble

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

var (
	_ store.Store     = (*Store)(nil)
	_ store.Catalogue = (*Store)(nil)
)

// Store is the embedded durable store. All methods may be called concurrently.
type Store struct {
	db      *pebbledb.DB
	disk    disk
	unwatch io.Closer // ends Pebble's own watch over the file system
	log     *logger
	watch   *watch
	id      task.StoreID

	// mu is held from the check of epochs until the batch stands in the log, but
	// not while the log is synced: what passed the check is ordered before the
	// take that would have refused it.
	mu struct {
		sync.Mutex
		closed bool
		held   map[partition.ID]*held // acquired or committed to here, not yet released
		next   number                 // of the next partition
		buf    []byte                 // scratch of whoever holds mu
		key    []byte                 // likewise
	}
}

// ErrClosed is the cause of what a write to a closed store answers.
var ErrClosed = errors.New("the store is closed")

// Errors of Open, matched with errors.Is.
var (
	// ErrLocked means that another process, or another store of this process,
	// has the directory.
	ErrLocked = errors.New("the directory is in use")
	// ErrNewerFormat means that a newer version wrote the directory.
	ErrNewerFormat = errors.New("the store was written by a newer version")
	// ErrNotAStore means that the directory holds other things than a store.
	ErrNotAStore = errors.New("the directory holds something that is no task store")
)

// Open opens the store in Options.Dir, or creates it there. It replays what was
// committed since the last flush, which takes time in proportion to the memory
// tables. When that cannot be done, on a full disk for example, Open returns an
// error; the process should end then, as a part of Pebble goes on trying and keeps
// the directory locked.
func Open(o Options) (*Store, error) {
	if err := o.ensureDefaults(); err != nil {
		return nil, err
	}
	log := newLogger(&o)
	d := newDisk(&o, log)
	if err := checkDir(o.FS, o.Dir); err != nil {
		return nil, fmt.Errorf("store in %q: %w", o.Dir, err)
	}
	po, unwatch := o.pebbleOptions(d)
	db, abandoned, err := d.background.openPebble(o.Dir, po)
	if abandoned != nil {
		go func() { <-abandoned; _ = unwatch.Close() }()
		return nil, fmt.Errorf("store in %q: what was committed last cannot be written to its files, and is safe in the log: %w", o.Dir, err)
	}
	if err != nil {
		return nil, errors.Join(openError(o.Dir, err), unwatch.Close())
	}
	s := &Store{db: db, disk: d, unwatch: unwatch, log: log, watch: newWatch(o.CommitDeadline)}
	s.mu.held = make(map[partition.ID]*held)
	if err := s.identify(); err != nil {
		return nil, errors.Join(fmt.Errorf("store in %q: %w", o.Dir, err), s.Close())
	}
	d.armed.Store(true)
	return s, nil
}

func openError(dir string, err error) error {
	switch {
	case errors.Is(err, ErrLocked):
		return fmt.Errorf("store in %q: %w: stop the server that uses it, or choose another directory", dir, err)
	case pebbledb.IsCorruptionError(err):
		return fmt.Errorf("store in %q is corrupt and was left as it is; restore a backup, or move the directory away to begin with an empty store: %w", dir, err)
	default:
		return fmt.Errorf("store in %q: %w", dir, err)
	}
}

// ID returns the store's id.
func (s *Store) ID() task.StoreID { return s.id }

// Healthy returns an error while a commit has been waiting for the disk for
// longer than the commit deadline. The commit itself goes on: whether it is
// stored is not known before it ends, or the process does. Until then nothing
// more should be added. Healthy does not block.
func (s *Store) Healthy() error { return s.watch.healthy() }

// Close closes the store, see [store.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	s.mu.closed = true
	s.mu.Unlock()
	s.disk.armed.Store(false)
	s.disk.background.close()
	return errors.Join(s.db.Close(), s.unwatch.Close())
}

// identify reads who the store is, or makes it one if it is empty.
func (s *Store) identify() error {
	value, found, err := s.read(s.db, []byte{kindFormat})
	if err != nil {
		return err
	}
	if !found {
		return s.create()
	}
	f, err := decodeFormat(value)
	if err != nil {
		return fmt.Errorf("format row: %w", err)
	}
	if f.version > formatVersion {
		return fmt.Errorf("%w: its format is %d, this version reads up to %d; run the version that wrote it or a later one",
			ErrNewerFormat, f.version, formatVersion)
	}
	s.id = f.id
	value, found, err = s.read(s.db, []byte{kindCounter})
	if err != nil {
		return err
	}
	s.mu.next = 1
	if found {
		n, err := decodeHeld(value) // only the number is set
		if err != nil {
			return fmt.Errorf("partition counter: %w", err)
		}
		s.mu.next = n.number
	}
	return nil
}

func (s *Store) create() error {
	it, err := s.db.NewIter(nil)
	if err != nil {
		return err
	}
	empty := !it.First()
	if err := it.Close(); err != nil {
		return err
	}
	if !empty {
		return ErrNotAStore
	}
	_, _ = rand.Read(s.id[:]) // never fails: it ends the process instead
	s.mu.next = 1
	f := format{version: formatVersion, id: s.id, created: task.At(time.Now())}
	if err := s.db.Set([]byte{kindFormat}, appendFormat(nil, f), pebbledb.Sync); err != nil {
		return err
	}
	// Pebble begins its first log in its oldest format, in which damage cannot be
	// told from a torn tail. A flush begins the next log, in the format asked for.
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-flushed:
		return nil
	case err := <-s.disk.background.hopeless:
		return fmt.Errorf("it cannot be created: %w", err)
	}
}

// writeLocked puts a batch into the log, and returns without waiting for the disk.
// Its order is that of the calls; the caller holds mu. An error means that
// nothing was written. A log that is broken ends the process.
func (s *Store) writeLocked(b *pebbledb.Batch) error {
	defer s.dieOnPanic("commit")
	return s.db.ApplyNoSyncWait(b, pebbledb.Sync)
}

// sync waits until a batch is on disk and releases it. When the log cannot be
// synced, nobody can tell what is on disk, and the process ends.
func (s *Store) sync(b *pebbledb.Batch) {
	defer s.dieOnPanic("commit")
	if err := b.SyncWait(); err != nil {
		s.log.fatal("the log cannot be synced: " + err.Error())
	}
	_ = b.Close() // gives its memory back; there is nothing to fail
}

// dieOnPanic is deferred around what panics when Pebble cannot write its log.
func (s *Store) dieOnPanic(what string) {
	if r := recover(); r != nil {
		s.log.fatal(fmt.Sprintf("%s: %v", what, r))
	}
}

// reader is a database or a snapshot of one.
type reader interface {
	Get(key []byte) (value []byte, closer io.Closer, err error)
}

// read returns a copy of the value of a key, if it exists.
func (s *Store) read(from reader, key []byte) (value []byte, found bool, err error) {
	v, closer, err := from.Get(key)
	if errors.Is(err, pebbledb.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	value = append(value, v...)
	return value, true, closer.Close()
}
