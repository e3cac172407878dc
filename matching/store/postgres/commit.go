package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Bounds of one statement. The server takes up to 1 GB at once; so much is
// neither quick nor needed, and what is encoded exists twice for a moment.
const (
	maxStatementBytes = 32 << 20
	maxMutationBytes  = 512 << 20
)

// change is a mutation on its way.
type change struct {
	*row.Mutation
	known
	outcome *store.Outcome
}

// Commit applies the mutations, see [store.Store]: in one statement and one round
// trip, unless together they hold more than 32 MiB or a partition's key is not
// known yet.
func (s *Store) Commit(ctx context.Context, ms []*row.Mutation) []store.Outcome {
	outcomes := make([]store.Outcome, len(ms))
	if len(ms) == 0 {
		return outcomes
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	defer s.watch.begin()()
	changes, err := s.changes(ctx, ms, outcomes)
	if err != nil {
		for i := range outcomes {
			outcomes[i] = store.Outcome{Result: store.NotStored, Err: fmt.Errorf("commit: %w", err)}
		}
		return outcomes
	}
	// Rows that arrive in the order of the index are cheaper to insert.
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.key, b.key) })
	for len(changes) > 0 {
		n := fitting(changes)
		s.apply(ctx, changes[:n])
		changes = changes[n:]
	}
	return outcomes
}

// changes finds the keys of the mutations' partitions. What needs no statement
// gets its outcome.
func (s *Store) changes(ctx context.Context, ms []*row.Mutation, outcomes []store.Outcome) ([]change, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	ps := make([]partition.ID, len(ms))
	for i, m := range ms {
		ps[i] = m.Partition
	}
	all, err := s.resolve(ctx, s.commits, ps)
	if err != nil {
		return nil, err
	}
	changes := make([]change, 0, len(ms))
	for i, m := range ms {
		if !all[i].exists {
			outcomes[i].Result = store.LostEpoch // nobody ever took it
			continue
		}
		if n := size(m); n > maxMutationBytes {
			outcomes[i] = store.Outcome{Result: store.NotStored, Err: fmt.Errorf(
				"commit: a mutation of %s has %d bytes, the limit is %d", m.Partition, n, maxMutationBytes)}
			continue
		}
		changes = append(changes, change{m, all[i], &outcomes[i]})
	}
	return changes, nil
}

// size is about how many bytes the mutation's rows have.
func size(m *row.Mutation) int {
	n := 0
	for _, rows := range [][]row.Task{m.PutTasks, m.PutScheduled} {
		for _, r := range rows {
			n += r.Task.Size()
		}
	}
	for _, d := range m.PutDead {
		n += d.Task.Size() + len(d.Reason)
	}
	return n + 100*m.Records()
}

// fitting is how many of the changes go into the next statement, at least one.
func fitting(changes []change) int {
	total := 0
	for i, c := range changes {
		if total += size(c.Mutation); total > maxStatementBytes && i > 0 {
			return i
		}
	}
	return len(changes)
}

// apply commits changes in one statement. If the server refuses it for the sake
// of one value, each is committed alone, so that one cannot hold up the others.
func (s *Store) apply(ctx context.Context, changes []change) {
	var b batch
	for _, c := range changes {
		b.add(c.key, c.Mutation)
	}
	found := make(map[key]task.Ownership, len(changes))
	result, err := s.run(ctx, s.commits, b.statement(s.sql), func(rows pgx.Rows) error {
		var k, epoch int64
		var node, runID, address pgtype.DriverBytes
		if err := rows.Scan(&k, &epoch, &node, &runID, &address); err != nil {
			return fmt.Errorf("the answer to a commit: %w", err)
		}
		found[key(k)] = ownership(epoch, node, runID, address)
		return nil
	})
	if len(changes) > 1 && result == store.NotStored && isOfOneRow(err) {
		for i := range changes {
			s.apply(ctx, changes[i:i+1])
		}
		return
	}
	for _, c := range changes {
		if err != nil {
			*c.outcome = store.Outcome{Result: result, Err: fmt.Errorf("commit: %w", err)}
			continue
		}
		s.settle(c, found)
	}
}

// settle says how a change of a statement that was stored ended: whether its
// epoch was the one that the fence found.
func (s *Store) settle(c change, found map[key]task.Ownership) {
	owner, ok := found[c.key]
	if ok && owner.Epoch == c.Epoch && c.Epoch != 0 {
		c.outcome.Result = store.Stored
		s.countDeletes(c.Mutation)
		return
	}
	*c.outcome = store.Outcome{Result: store.LostEpoch, Owner: owner}
	if owner.Epoch < c.epoch {
		s.alarm("partition "+c.Partition.String(), c.epoch, owner.Epoch)
	}
	if !ok {
		s.keys.forget(c.Partition)
	}
}

func (s *Store) countDeletes(m *row.Mutation) {
	s.vacuum.add(tableTask, len(m.DeleteTasks))
	s.vacuum.add(tableScheduled, len(m.DeleteScheduled))
	s.vacuum.add(tableLease, len(m.DeleteLeases))
	s.vacuum.add(tableDead, len(m.DeleteDead))
	s.vacuum.add(tableRequest, len(m.DeleteRequests))
}
