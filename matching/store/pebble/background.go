package pebble

import (
	"sync"
	"sync/atomic"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"
)

// Pebble tries failed flushes and compactions again at once and for ever, as
// fast as the disk says no. Between two tries there is a rest, which doubles.
const (
	firstRest = 100 * time.Millisecond
	longRest  = time.Second
	// openTries is how many failures in a row are one too many for a store that is
	// being opened: it cannot be used before its log has been flushed.
	openTries = 5
)

// background is how Pebble's work in the background fares. All methods may be
// called concurrently.
type background struct {
	failures atomic.Int64 // in a row
	hopeless chan error   // gets the error of failure openTries
	closing  chan struct{}
	close    func() // closes closing: nobody rests any more
}

func newBackground() *background {
	b := &background{hopeless: make(chan error, 1), closing: make(chan struct{})}
	b.close = sync.OnceFunc(func() { close(b.closing) })
	return b
}

// failed counts a failure. It does not block: Pebble has a lock meanwhile.
func (b *background) failed(err error) {
	if b.failures.Add(1) != openTries {
		return
	}
	select {
	case b.hopeless <- err:
	default: // nobody has asked since the last time
	}
}

// succeeded ends a row of failures.
func (b *background) succeeded() { b.failures.Store(0) }

// rest waits as long as the failures in a row call for. Pebble has no lock when it
// makes the file of a table.
func (b *background) rest() {
	n := b.failures.Load()
	if n == 0 {
		return
	}
	select {
	case <-time.After(restAfter(n)):
	case <-b.closing:
	}
}

// restAfter is the rest after n failures in a row.
func restAfter(n int64) time.Duration {
	const doublings = 4 // by then it is longRest
	return min(firstRest<<min(n-1, doublings), longRest)
}

// opened is the end of a Pebble that was being opened.
type opened struct {
	db  *pebbledb.DB
	err error
}

// openPebble opens a database. It gives up when the log of the run before cannot be
// flushed, for which Pebble itself would wait for ever. What it leaves behind
// then goes on trying, and closes the database should it ever be open: the
// directory is locked until then, or until the process ends.
func (b *background) openPebble(dir string, po *pebbledb.Options) (db *pebbledb.DB, abandoned <-chan struct{}, err error) {
	result := make(chan opened, 1)
	go func() {
		db, err := pebbledb.Open(dir, po)
		result <- opened{db, err}
	}()
	select {
	case r := <-result:
		return r.db, nil, r.err
	case err := <-b.hopeless:
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			if r := <-result; r.db != nil {
				_ = r.db.Close() // nobody is left to hear of it
			}
		}()
		return nil, gone, err
	}
}
