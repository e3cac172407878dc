// Package backlog is the way between one partition's books and the store: it
// takes a partition and loads what must be known before the first task is
// handed out, and it carries out the reads that the ledger asks for.
//
// # Load order
//
// The epoch is taken first, so that what is read afterwards cannot change any
// more. Then every lease row is read: a task with a live lease must not be
// handed out again before the lease has run its whole duration once more. Tasks
// themselves are read later, a window at a time, when the ledger wants them.
package backlog

import (
	"context"
	"fmt"

	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// deadCounted is how many dead rows are counted when a partition is loaded, and
// deadBytes how many bytes of them are read for that.
const (
	deadCounted = 1000
	deadBytes   = 1 << 20
)

// leasePage is how many lease rows are read at a time.
const leasePage = 10_000

// Store is the part of [store.Store] that a backlog needs.
type Store interface {
	Acquire(ctx context.Context, holder task.Holder, ps []partition.ID) ([]store.Acquired, error)
	Scan(ctx context.Context, p partition.ID, s row.Scan) (row.Page, error)
	Get(ctx context.Context, p partition.ID, ids []task.ID) ([]row.Record, error)
}

// Opened is a partition that was taken: what its ledger starts from.
type Opened struct {
	Epoch    task.Epoch
	Meta     row.Meta
	Leases   []row.Lease
	Previous task.Ownership

	Dead     int64 // dead rows that were counted
	DeadMore bool  // there are more, or may be
}

// Open takes the partition for the holder and reads its leases. The error says
// which of the two steps failed; after an error the partition may be taken or
// not, and opening it again is safe.
func Open(ctx context.Context, s Store, holder task.Holder, p partition.ID) (Opened, error) {
	acquired, err := s.Acquire(ctx, holder, []partition.ID{p})
	if err == nil {
		err = acquired[0].Err
	}
	if err != nil {
		return Opened{}, fmt.Errorf("taking partition %s: %w", p, err)
	}
	o := Opened{Epoch: acquired[0].Epoch, Meta: acquired[0].Meta, Previous: acquired[0].Previous}
	if o.Meta.Listed { // else nothing was ever added
		o.countDead(ctx, s, p)
	}
	if !o.Meta.MayHold {
		return o, nil
	}
	scan := row.Scan{Kind: row.Leases, Items: leasePage}
	for {
		page, err := s.Scan(ctx, p, scan)
		if err != nil {
			return Opened{}, fmt.Errorf("reading the leases of partition %s: %w", p, err)
		}
		o.Leases = append(o.Leases, page.Leases...)
		if !page.More {
			return o, nil
		}
		scan.After.ID = page.Leases[len(page.Leases)-1].ID
	}
}

// countDead counts dead rows. One that cannot be read makes a count uncertain and
// no more: the tasks of the partition are to be worked on all the same.
func (o *Opened) countDead(ctx context.Context, s Store, p partition.ID) {
	page, err := s.Scan(ctx, p, row.Scan{Kind: row.Dead, Items: deadCounted, Bytes: deadBytes})
	o.Dead, o.DeadMore = int64(len(page.Dead)), page.More || err != nil
}

// Read carries out a read of the ledger: a lookup fills records, a scan fills
// the page. The error is the store's own: the ledger says what it was for.
func Read(ctx context.Context, s Store, p partition.ID, r ledger.Read) (row.Page, []row.Record, error) {
	if len(r.IDs) > 0 {
		records, err := s.Get(ctx, p, r.IDs)
		return row.Page{}, records, err
	}
	page, err := s.Scan(ctx, p, r.Scan)
	return page, nil, err
}
