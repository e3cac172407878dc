// Package memory is a store that keeps everything in maps and trees of its
// process. It is for tests: of what is built on a store, and as the reference
// that the durable stores are compared with. Nothing survives the process; a
// node's crash is played by building the node anew on the same store.
//
// # Faults
//
// A store under a test misbehaves on request. [Options] holds one function per
// kind of call; it sees the call and says how it is to end, within the laws of
// package store. What the store is never made to do is to break a law: a
// mutation answered "not stored" is not there, one answered "stored" is.
//
// A commit may be answered Unknown in three ways: it was applied, it never will
// be, or it is on its way ([ApplyLater]) and takes effect when the test calls
// [Store.ApplyLate], unless the partition was acquired meanwhile.
//
// # Laws of the rows
//
// A store does not look into mutations. This one can: with Options.Broken set
// it checks each applied mutation against laws R1 to R4 of package row and
// reports what breaks one.
package memory

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

var (
	_ store.Store     = (*Store)(nil)
	_ store.Catalogue = (*Store)(nil)
)

// Store is a store in memory. All methods may be called concurrently.
type Store struct {
	options Options
	id      task.StoreID

	mu struct {
		sync.Mutex
		closed     bool
		partitions map[partition.ID]*rows
		settings   map[partition.Queue]document
		late       []*row.Mutation // answered Unknown, not yet applied
	}
}

// ErrClosed is the cause of everything that a closed store answers.
var ErrClosed = errors.New("the store is closed")

// New returns an empty store with a random id.
func New(o Options) *Store {
	s := &Store{options: o, id: o.ID}
	if s.id == (task.StoreID{}) {
		_, _ = rand.Read(s.id[:]) // never fails: it ends the process instead
	}
	s.mu.partitions = make(map[partition.ID]*rows)
	s.mu.settings = make(map[partition.Queue]document)
	return s
}

// ID returns the store's id.
func (s *Store) ID() task.StoreID { return s.id }

// Acquire takes the partitions, see [store.Store].
func (s *Store) Acquire(ctx context.Context, holder task.Holder, ps []partition.ID) ([]store.Acquired, error) {
	fault := AcquireFault{}
	if s.options.Acquire != nil {
		fault = s.options.Acquire(holder, ps)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readyLocked(ctx); err != nil {
		return nil, err
	}
	if fault.Err != nil && !fault.Taken {
		return nil, fault.Err
	}
	taken := make([]store.Acquired, len(ps))
	for i, p := range ps {
		taken[i] = s.acquireLocked(holder, p)
	}
	if fault.Err != nil {
		return nil, fault.Err
	}
	return taken, nil
}

// Commit applies mutations, see [store.Store].
func (s *Store) Commit(ctx context.Context, ms []*row.Mutation) []store.Outcome {
	var faults []CommitFault
	if s.options.Commit != nil {
		faults = s.options.Commit(ms)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	outcomes := make([]store.Outcome, len(ms))
	for i, m := range ms {
		if err := s.readyLocked(ctx); err != nil {
			outcomes[i] = store.Outcome{Result: store.NotStored, Err: err}
			continue
		}
		fault := Normal
		if i < len(faults) {
			fault = faults[i]
		}
		outcomes[i] = s.commitLocked(m, fault)
	}
	return outcomes
}

// Scan reads rows of one kind, see [store.Store].
func (s *Store) Scan(ctx context.Context, p partition.ID, scan row.Scan) (row.Page, error) {
	if err := scan.Validate(); err != nil {
		return row.Page{}, err
	}
	var page row.Page
	err := s.read(ctx, Read{Partition: p, Scan: &scan}, func(r *rows) { page = r.scan(scan) })
	return page, err
}

// Get reads all there is of the given tasks, see [store.Store].
func (s *Store) Get(ctx context.Context, p partition.ID, ids []task.ID) ([]row.Record, error) {
	records := make([]row.Record, len(ids))
	for i, id := range ids {
		records[i].ID = id
	}
	err := s.read(ctx, Read{Partition: p, IDs: ids}, func(r *rows) {
		for i, id := range ids {
			records[i] = r.get(id)
		}
	})
	if err != nil {
		return nil, err
	}
	return records, nil
}

// Requests reads request rows, see [store.Store].
func (s *Store) Requests(ctx context.Context, p partition.ID, requestIDs []string) ([]row.Request, error) {
	var found []row.Request
	err := s.read(ctx, Read{Partition: p, RequestIDs: requestIDs}, func(r *rows) {
		for _, id := range requestIDs {
			if request, ok := r.requests[id]; ok {
				found = append(found, request)
			}
		}
	})
	return found, err
}

// Close ends the store: whatever is called afterwards answers [ErrClosed].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
	return nil
}

func (s *Store) acquireLocked(holder task.Holder, p partition.ID) store.Acquired {
	r := s.mu.partitions[p]
	if r == nil {
		r = newRows()
		s.mu.partitions[p] = r
	}
	if r.epoch >= task.MaxEpoch {
		return store.Acquired{Err: fmt.Errorf("partition %s: its lease epoch has reached the highest, %d", p, task.MaxEpoch)}
	}
	got := store.Acquired{
		Epoch:    r.epoch + 1,
		Meta:     r.meta,
		Previous: task.Ownership{Holder: r.holder, Epoch: r.epoch},
	}
	r.epoch, r.holder, r.meta.Released = got.Epoch, holder, false
	return got
}

func (s *Store) commitLocked(m *row.Mutation, fault CommitFault) store.Outcome {
	unknown := store.Outcome{Result: store.Unknown, Err: ErrFault}
	switch fault {
	case Normal: // below
	case Refuse:
		return store.Outcome{Result: store.NotStored, Err: ErrFault}
	case ApplyNever:
		return unknown
	case ApplyLater:
		s.mu.late = append(s.mu.late, clone(m))
		return unknown
	case ApplyNow:
		s.applyLocked(m)
		return unknown
	}
	if !s.applyLocked(m) {
		return store.Outcome{Result: store.LostEpoch, Owner: s.ownerLocked(m.Partition)}
	}
	return store.Outcome{Result: store.Stored}
}

// applyLocked applies m if its epoch holds, and reports whether it did.
func (s *Store) applyLocked(m *row.Mutation) bool {
	r := s.mu.partitions[m.Partition]
	if r == nil || r.epoch != m.Epoch {
		return false
	}
	if s.options.Broken != nil {
		r.check(m, s.options.Broken)
	}
	r.apply(m)
	return true
}

func (s *Store) ownerLocked(p partition.ID) task.Ownership {
	r := s.mu.partitions[p]
	if r == nil {
		return task.Ownership{}
	}
	return task.Ownership{Holder: r.holder, Epoch: r.epoch}
}

// read calls see with the rows of the partition, unless it has none, a fault
// was asked for, or the store cannot be read.
func (s *Store) read(ctx context.Context, what Read, see func(*rows)) error {
	if s.options.Read != nil {
		if err := s.options.Read(what); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readyLocked(ctx); err != nil {
		return err
	}
	if r := s.mu.partitions[what.Partition]; r != nil {
		see(r)
	}
	return nil
}

func (s *Store) readyLocked(ctx context.Context) error {
	if s.mu.closed {
		return ErrClosed
	}
	return context.Cause(ctx)
}
