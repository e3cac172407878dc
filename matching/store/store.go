// Package store is what the matching server asks of a durable store: to take a
// partition, to commit changes of many partitions at once, and to read them
// back. Everything above it works with any store that passes the conformance
// suite in storetest.
//
// # Laws
//
//	S1  Acquire raises the partition's epoch by one and names the holder, as one
//	    conditional step. After it returned, no write of an earlier epoch can
//	    ever take effect, however late it arrives.
//	S2  Commit applies each mutation whole or not at all, and only while its
//	    epoch is the partition's epoch. One mutation's outcome says nothing of
//	    another's.
//	S3  Stored means durable: it survives kill -9 and the loss of power.
//	S4  NotStored and LostEpoch mean that nothing of the mutation is stored, and
//	    never will be.
//	S5  Unknown means that it may be stored now, later, or never, until the
//	    partition is acquired again; from then on reads tell.
//	S6  Reads see every mutation that was Stored before they began, and each
//	    mutation whole or not at all.
//	S7  Scans return rows in key order: no row twice, none left out that existed
//	    throughout.
//
// A store may be called concurrently, except that mutations of one partition
// are never committed concurrently.
package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Result is how the commit of one mutation ended.
type Result uint8

// The results of a commit.
const (
	Stored    Result = iota + 1 // durable
	NotStored                   // surely not stored; the epoch still holds, as far as known
	LostEpoch                   // surely not stored; another run holds the partition
	Unknown                     // see law S5
)

// String returns the result's name.
func (r Result) String() string {
	switch r {
	case Stored:
		return "stored"
	case NotStored:
		return "not stored"
	case LostEpoch:
		return "lost epoch"
	case Unknown:
		return "unknown"
	default:
		return fmt.Sprintf("result(%d)", uint8(r))
	}
}

// Outcome is how the commit of one mutation ended, and why.
type Outcome struct {
	Result Result
	Owner  task.Ownership // LostEpoch only: who holds the partition now, when known
	Err    error          // the cause of NotStored and Unknown
}

// Acquired is the answer for one partition of an Acquire call.
type Acquired struct {
	Epoch    task.Epoch // the new epoch
	Meta     row.Meta   // as of the take, Released cleared in the store
	Previous task.Ownership
	Err      error // this partition was not taken; the other fields are empty
}

// Store is a durable store of partitions. See the laws in the package doc.
type Store interface {
	// ID names the store: made at random when it was created, and kept.
	ID() task.StoreID

	// Acquire takes the partitions for the holder. The result has one element
	// per partition, in order. The error is set when the whole call failed, and
	// then whether any partition was taken is unknown.
	Acquire(ctx context.Context, holder task.Holder, ps []partition.ID) ([]Acquired, error)

	// Commit applies mutations, at most one per partition; the result has one
	// element per mutation, in order. It does not keep the mutations, but may
	// keep the tasks they point to until it returns.
	Commit(ctx context.Context, ms []*row.Mutation) []Outcome

	// Scan reads rows of one kind in key order.
	Scan(ctx context.Context, p partition.ID, s row.Scan) (row.Page, error)

	// Get reads all there is of the given tasks, wherever their rows are. The
	// result has one element per id, in order.
	Get(ctx context.Context, p partition.ID, ids []task.ID) ([]row.Record, error)

	// Requests reads request rows by request id; missing ones are left out.
	Requests(ctx context.Context, p partition.ID, requestIDs []string) ([]row.Request, error)

	// Close releases the store. No other method may be running or called after it.
	Close() error
}

// Listed is one partition in the catalogue.
type Listed struct {
	Partition partition.ID
	Epoch     task.Epoch
	Holder    task.Holder
	Meta      row.Meta
}

// Catalogue lists the partitions that were added to, and keeps one settings
// document per queue. Every store is also a Catalogue.
type Catalogue interface {
	// List returns the partitions whose metadata says Listed, in the order of
	// namespace, name, type and number (text by its bytes), beginning after the
	// given one (the zero ID begins at the start), at most limit of them. Fewer
	// than limit means the end.
	List(ctx context.Context, after partition.ID, limit int) ([]Listed, error)

	// Settings returns the queue's document and its version, or version 0 when
	// it has none.
	Settings(ctx context.Context, q partition.Queue) (doc []byte, version int64, err error)

	// PutSettings writes the queue's document if its version is still ifVersion
	// and returns the new version, or ErrVersion. A nil document removes it; the
	// version is 0 then. Versions only grow, also across a removal, so that none
	// ever names two contents.
	PutSettings(ctx context.Context, q partition.Queue, doc []byte, ifVersion int64) (int64, error)
}

// ErrVersion is returned by PutSettings when the document changed meanwhile.
var ErrVersion = errors.New("the settings document has another version")
