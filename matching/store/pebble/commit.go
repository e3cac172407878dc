package pebble

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Acquire takes the partitions in one commit, see [store.Store].
func (s *Store) Acquire(ctx context.Context, holder task.Holder, ps []partition.ID) ([]store.Acquired, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	defer s.watch.begin()()
	b := s.db.NewBatch()
	taken, err := s.take(b, holder, ps)
	if err != nil {
		return nil, fmt.Errorf("acquire %d partitions: %w", len(ps), err)
	}
	s.sync(b)
	return taken, nil
}

// take writes the takes into the log.
func (s *Store) take(b *pebbledb.Batch, holder task.Holder, ps []partition.ID) ([]store.Acquired, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return nil, ErrClosed
	}
	next := s.mu.next
	fresh := make(map[partition.ID]*held, len(ps))
	taken := make([]store.Acquired, len(ps))
	for i, p := range ps {
		h, err := s.heldLocked(p)
		if err != nil {
			return nil, err
		}
		if again := fresh[p]; again != nil {
			h = again
		}
		if h == nil {
			h = &held{number: next}
			next++
		}
		if h.epoch >= task.MaxEpoch {
			taken[i].Err = fmt.Errorf("partition %s: its lease epoch has reached the highest, %d", p, task.MaxEpoch)
			continue
		}
		taken[i] = store.Acquired{Epoch: h.epoch + 1, Meta: h.meta, Previous: h.ownership()}
		mine := *h
		mine.epoch, mine.holder, mine.meta.Released = h.epoch+1, holder, false
		fresh[p] = &mine
		s.putHeldLocked(b, p, &mine)
	}
	if next != s.mu.next {
		_ = b.Set([]byte{kindCounter}, appendHeld(nil, held{number: next}), nil)
	}
	if err := s.writeLocked(b); err != nil {
		return nil, err
	}
	s.mu.next = next
	maps.Copy(s.mu.held, fresh)
	return taken, nil
}

// heldLocked returns the row of a partition, or nil when nobody ever took it.
func (s *Store) heldLocked(p partition.ID) (*held, error) {
	if h := s.mu.held[p]; h != nil {
		return h, nil
	}
	h, err := s.readHeld(s.db, p)
	if h != nil {
		s.mu.held[p] = h
	}
	return h, err
}

func (s *Store) readHeld(from reader, p partition.ID) (*held, error) {
	value, found, err := s.read(from, appendPartitionKey(nil, kindPartition, p))
	if err != nil || !found {
		return nil, err
	}
	h, err := decodeHeld(value)
	if err != nil {
		return nil, fmt.Errorf("partition %s: %w", p, err)
	}
	return &h, nil
}

func (s *Store) putHeldLocked(b *pebbledb.Batch, p partition.ID, h *held) {
	s.mu.key = appendPartitionKey(s.mu.key[:0], kindPartition, p)
	s.mu.buf = appendHeld(s.mu.buf[:0], *h)
	_ = b.Set(s.mu.key, s.mu.buf, nil)
}

// Commit applies all mutations in one batch, see [store.Store]. Once it is on
// its way the context no longer matters: the answer is Stored, or the process
// ends.
func (s *Store) Commit(ctx context.Context, ms []*row.Mutation) []store.Outcome {
	outcomes := make([]store.Outcome, len(ms))
	err := context.Cause(ctx)
	if err == nil {
		defer s.watch.begin()()
		b := s.db.NewBatch(pebbledb.WithMaxRetainedSizeBytes(maxRetainedBatch))
		if err = s.apply(b, ms, outcomes); err == nil {
			s.sync(b)
		}
	}
	for i := range outcomes {
		switch {
		case outcomes[i].Result != 0:
		case err != nil:
			outcomes[i] = store.Outcome{Result: store.NotStored, Err: err}
		default:
			outcomes[i].Result = store.Stored
		}
	}
	return outcomes
}

// maxRetainedBatch is how big a batch may have grown and still lend its memory
// to a later one.
const maxRetainedBatch = 4 << 20

// change is a mutation whose epoch holds.
type change struct {
	*row.Mutation
	held *held
}

// apply writes the mutations whose epoch holds into the log, and the outcome of
// the others into outcomes. After an error nothing is written.
func (s *Store) apply(b *pebbledb.Batch, ms []*row.Mutation, outcomes []store.Outcome) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return ErrClosed
	}
	changes := make([]change, 0, len(ms))
	for i, m := range ms {
		h, err := s.heldLocked(m.Partition)
		switch {
		case err != nil:
			outcomes[i] = store.Outcome{Result: store.NotStored, Err: err}
		case h == nil:
			outcomes[i] = store.Outcome{Result: store.LostEpoch}
		case h.epoch != m.Epoch:
			outcomes[i] = store.Outcome{Result: store.LostEpoch, Owner: h.ownership()}
		default:
			changes = append(changes, change{m, h})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.held.number, b.held.number) })
	s.encodeLocked(b, changes)
	if b.Empty() {
		return nil
	}
	if err := s.writeLocked(b); err != nil {
		return err
	}
	for _, c := range changes {
		if c.Meta != nil {
			s.keepLocked(c)
		}
	}
	return nil
}

// keepLocked remembers metadata that was written. A partition that its holder
// gave up need not be remembered: its row tells when somebody asks.
func (s *Store) keepLocked(c change) {
	if c.Meta.Released {
		delete(s.mu.held, c.Partition)
		return
	}
	c.held.meta = *c.Meta
}

// encodeLocked writes the changes into the batch kind by kind, and within a kind by
// partition: keys that arrive in order are cheaper to insert. Within a kind of
// one partition deletes come before puts, as [row.Mutation] promises.
func (s *Store) encodeLocked(b *pebbledb.Batch, changes []change) {
	for _, encode := range []func(*Store, *pebbledb.Batch, change){
		(*Store).catalogueLocked, (*Store).scheduledLocked, (*Store).leasesLocked, (*Store).partitionLocked,
		(*Store).requestsLocked, (*Store).tasksLocked, (*Store).deadLocked,
	} {
		for _, c := range changes {
			encode(s, b, c)
		}
	}
}

// The errors of a batch that has no index are those of the index, so they are
// not looked at below.

func (s *Store) catalogueLocked(b *pebbledb.Batch, c change) {
	if c.Meta == nil || c.Meta.Listed == c.held.meta.Listed {
		return
	}
	s.mu.key = appendPartitionKey(s.mu.key[:0], kindCatalogue, c.Partition)
	if c.Meta.Listed {
		_ = b.Set(s.mu.key, nil, nil)
	} else {
		_ = b.Delete(s.mu.key, nil)
	}
}

func (s *Store) partitionLocked(b *pebbledb.Batch, c change) {
	if c.Meta == nil {
		return
	}
	h := *c.held
	h.meta = *c.Meta
	s.putHeldLocked(b, c.Partition, &h)
}

func (s *Store) scheduledLocked(b *pebbledb.Batch, c change) {
	n := c.held.number
	for _, k := range c.DeleteScheduled {
		s.mu.key = appendScheduledKey(s.mu.key[:0], n, k)
		_ = b.Delete(s.mu.key, nil)
		s.mu.key = appendIndexKey(s.mu.key[:0], n, k)
		_ = b.Delete(s.mu.key, nil)
	}
	for _, t := range c.PutScheduled {
		k := row.DueKey{Due: t.Due, ID: t.Task.ID}
		s.mu.key = appendScheduledKey(s.mu.key[:0], n, k)
		s.mu.buf = row.AppendTask(s.mu.buf[:0], t)
		_ = b.Set(s.mu.key, s.mu.buf, nil)
		s.mu.key = appendIndexKey(s.mu.key[:0], n, k)
		_ = b.Set(s.mu.key, nil, nil)
	}
}

func (s *Store) leasesLocked(b *pebbledb.Batch, c change) {
	for _, id := range c.DeleteLeases {
		s.mu.key = appendIDKey(s.mu.key[:0], kindLease, c.held.number, id)
		_ = b.Delete(s.mu.key, nil)
	}
	for _, l := range c.PutLeases {
		s.mu.key = appendIDKey(s.mu.key[:0], kindLease, c.held.number, l.ID)
		s.mu.buf = row.AppendLease(s.mu.buf[:0], l)
		_ = b.Set(s.mu.key, s.mu.buf, nil)
	}
}

func (s *Store) requestsLocked(b *pebbledb.Batch, c change) {
	for _, id := range c.DeleteRequests {
		s.mu.key = appendRequestKey(s.mu.key[:0], c.held.number, id)
		_ = b.Delete(s.mu.key, nil)
	}
	for _, q := range c.PutRequests {
		s.mu.key = appendRequestKey(s.mu.key[:0], c.held.number, q.RequestID)
		s.mu.buf = appendRequest(s.mu.buf[:0], q)
		_ = b.Set(s.mu.key, s.mu.buf, nil)
	}
}

func (s *Store) tasksLocked(b *pebbledb.Batch, c change) {
	n := c.held.number
	for _, r := range c.DeleteRanges {
		s.mu.key = appendTaskKey(s.mu.key[:0], n, row.TaskKey{Priority: r.Priority, ID: r.From})
		s.mu.buf = justAfter(appendTaskKey(s.mu.buf[:0], n, row.TaskKey{Priority: r.Priority, ID: r.To}))
		_ = b.DeleteRange(s.mu.key, s.mu.buf, nil)
	}
	for _, k := range c.DeleteTasks {
		s.mu.key = appendTaskKey(s.mu.key[:0], n, k)
		_ = b.SingleDelete(s.mu.key, nil) // legal by law R2: the row was written once
	}
	for _, t := range c.PutTasks {
		s.mu.key = appendTaskKey(s.mu.key[:0], n, row.TaskKey{Priority: t.Task.Priority, ID: t.Task.ID})
		s.mu.buf = row.AppendTask(s.mu.buf[:0], t)
		_ = b.Set(s.mu.key, s.mu.buf, nil)
	}
}

func (s *Store) deadLocked(b *pebbledb.Batch, c change) {
	for _, id := range c.DeleteDead {
		s.mu.key = appendIDKey(s.mu.key[:0], kindDead, c.held.number, id)
		_ = b.Delete(s.mu.key, nil)
	}
	for _, d := range c.PutDead {
		s.mu.key = appendIDKey(s.mu.key[:0], kindDead, c.held.number, d.Task.ID)
		s.mu.buf = row.AppendDead(s.mu.buf[:0], d)
		_ = b.Set(s.mu.key, s.mu.buf, nil)
	}
}
