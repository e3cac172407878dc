package postgres

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

const findPartitions = `
SELECT w.i, p.key FROM unnest($1::int4[], $2::bytea[], $3::bytea[], $4::int2[], $5::int4[]) w(i, namespace, queue, type, number)
 CROSS JOIN LATERAL (SELECT key FROM {s}.partition p WHERE p.namespace = w.namespace AND p.queue = w.queue
  AND p.type = w.type AND p.number = w.number OFFSET 0) p`

//nolint:dupword // several columns begin as false
const createPartitions = `
INSERT INTO {s}.partition (key, namespace, queue, type, number, epoch, node, run_id, address, released, may_hold, listed, acks, backlog)
 SELECT w.key, w.namespace, w.queue, w.type, w.number, 0, '', '', '', false, false, false, $6::bytea, 0
  FROM unnest($1::int8[], $2::bytea[], $3::bytea[], $4::int2[], $5::int4[]) w(key, namespace, queue, type, number)
  ORDER BY w.namespace, w.queue, w.type, w.number
 ON CONFLICT DO NOTHING`

// takePartitions locks in the order of keys, as commits do, and only then
// decides: what it compares and answers is what the lock holds still. A join with
// what was locked could be planned as a scan of all partitions.
const takePartitions = `
WITH held AS MATERIALIZED (SELECT key, epoch, node, run_id, address, released, may_hold, listed, acks, backlog
  FROM {s}.partition WHERE key = ANY($1::int8[]) ORDER BY key FOR NO KEY UPDATE),
 taken AS (UPDATE {s}.partition p SET epoch = p.epoch + 1, node = $2, run_id = $3, address = $4, released = false
  WHERE p.key = ANY(ARRAY(SELECT key FROM held WHERE epoch < $5)))
SELECT key, epoch, node, run_id, address, released, may_hold, listed, acks, backlog FROM held`

// Acquire takes the partitions, see [store.Store]: one round trip for those whose
// keys are known, up to three more for the others. A partition that is named
// twice is taken once.
func (s *Store) Acquire(ctx context.Context, holder task.Holder, ps []partition.ID) ([]store.Acquired, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if len(ps) == 0 {
		return nil, nil
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	all, err := s.ensure(ctx, ps)
	if err != nil {
		return nil, fmt.Errorf("acquire %d partitions: %w", len(ps), err)
	}
	wanted := make([]int64, 0, len(ps))
	for _, k := range all {
		wanted = append(wanted, int64(k.key))
	}
	taken, err := s.take(ctx, holder, wanted)
	if err != nil {
		return nil, fmt.Errorf("acquire %d partitions: %w", len(ps), err)
	}
	answers := make([]store.Acquired, len(ps))
	for i, p := range ps {
		answers[i] = s.taken(p, all[i], taken)
	}
	return answers, nil
}

// taken is the answer for one partition.
func (s *Store) taken(p partition.ID, before known, taken map[key]store.Acquired) store.Acquired {
	a, ok := taken[before.key]
	switch {
	case !ok:
		s.keys.forget(p)
		return store.Acquired{Err: fmt.Errorf("partition %s: its row is gone, ask again", p)}
	case a.Err != nil:
		return store.Acquired{Err: fmt.Errorf("partition %s: %w", p, a.Err)}
	}
	if before.epoch >= a.Epoch {
		s.alarm("partition "+p.String(), before.epoch, a.Previous.Epoch)
	}
	s.keys.put(p, known{key: before.key, exists: true, epoch: a.Epoch})
	return a
}

func (s *Store) take(ctx context.Context, holder task.Holder, wanted []int64) (map[key]store.Acquired, error) {
	taken := make(map[key]store.Acquired, len(wanted))
	args := []any{wanted, []byte(holder.Node), []byte(holder.RunID), []byte(holder.Address), int64(task.MaxEpoch)}
	_, err := s.run(ctx, s.rest, statement{s.sql.take, args}, func(rows pgx.Rows) error {
		var k, epoch int64
		var node, runID, address, acks pgtype.DriverBytes
		var a store.Acquired
		if err := rows.Scan(&k, &epoch, &node, &runID, &address,
			&a.Meta.Released, &a.Meta.MayHold, &a.Meta.Listed, &acks, &a.Meta.Backlog); err != nil {
			return fmt.Errorf("a partition that was taken: %w", err)
		}
		if a.Epoch = task.Epoch(epoch) + 1; a.Epoch > task.MaxEpoch {
			taken[key(k)] = store.Acquired{Err: fmt.Errorf("its lease epoch has reached the highest, %d", task.MaxEpoch)}
			return nil
		}
		a.Previous = ownership(epoch, node, runID, address)
		err := decodeAcks(&a.Meta, acks)
		taken[key(k)] = a
		return err
	})
	return taken, err
}

func ownership(epoch int64, node, runID, address []byte) task.Ownership {
	return task.Ownership{
		Holder: task.Holder{Node: string(node), RunID: string(runID), Address: string(address)},
		Epoch:  task.Epoch(epoch),
	}
}

// names are partitions as columns.
type names struct {
	index, number    []int32
	namespace, queue [][]byte
	kind             []int16
}

func (n *names) add(i int, p partition.ID) {
	n.index = append(n.index, int32(i))
	n.namespace = append(n.namespace, []byte(p.Namespace))
	n.queue = append(n.queue, []byte(p.Name))
	n.kind = append(n.kind, int16(p.Type))
	n.number = append(n.number, p.Number)
}

// resolve returns what is known of the partitions, in order, and asks for the
// keys that are not remembered. Those that nobody ever took have none.
func (s *Store) resolve(ctx context.Context, pool *pgxpool.Pool, ps []partition.ID) ([]known, error) {
	all := make([]known, len(ps))
	var unknown names
	for i, p := range ps {
		if all[i] = s.keys.get(p); !all[i].exists {
			unknown.add(i, p)
		}
	}
	if len(unknown.index) == 0 {
		return all, nil
	}
	args := []any{unknown.index, unknown.namespace, unknown.queue, unknown.kind, unknown.number}
	_, err := s.run(ctx, pool, statement{s.sql.find, args}, func(rows pgx.Rows) error {
		var i int32
		var k int64
		if err := rows.Scan(&i, &k); err != nil {
			return fmt.Errorf("the key of a partition: %w", err)
		}
		all[i] = known{key: key(k), exists: true}
		s.keys.put(ps[i], all[i])
		return nil
	})
	return all, err
}

// ensure is resolve, but makes rows for partitions that nobody ever took.
func (s *Store) ensure(ctx context.Context, ps []partition.ID) ([]known, error) {
	all, err := s.resolve(ctx, s.rest, ps)
	if err != nil {
		return nil, err
	}
	var missing []partition.ID
	for i, k := range all {
		if !k.exists {
			missing = append(missing, ps[i])
		}
	}
	if len(missing) == 0 {
		return all, nil
	}
	slices.SortFunc(missing, comparePartitions) // two nodes that make the same ones do not wait for each other
	var fresh names
	keys := make([]int64, 0, len(missing))
	for i, p := range slices.Compact(missing) {
		fresh.add(i, p)
		keys = append(keys, int64(newKey()))
	}
	args := []any{keys, fresh.namespace, fresh.queue, fresh.kind, fresh.number, encodeAcks(row.Meta{})}
	if _, err := s.run(ctx, s.rest, statement{s.sql.create, args}, nil); err != nil {
		return nil, err
	}
	return s.resolve(ctx, s.rest, ps)
}

func comparePartitions(a, b partition.ID) int {
	return cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Type, b.Type), cmp.Compare(a.Number, b.Number),
	)
}

// acksLen is the length of the acks of all priorities: 8 bytes each, big endian.
const acksLen = 8 * task.Priorities

func encodeAcks(m row.Meta) []byte {
	b := make([]byte, 0, acksLen)
	for _, id := range m.Acks {
		b = binary.BigEndian.AppendUint64(b, uint64(id))
	}
	return b
}

func decodeAcks(m *row.Meta, b []byte) error {
	if len(b) != acksLen {
		return fmt.Errorf("%w: levels of %d bytes, want %d", row.ErrCorrupt, len(b), acksLen)
	}
	for i := range m.Acks {
		m.Acks[i] = task.ID(binary.BigEndian.Uint64(b[8*i:]))
	}
	return nil
}
