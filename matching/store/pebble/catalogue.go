package pebble

import (
	"context"
	"errors"
	"fmt"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/partition"
)

// List lists the catalogue at one moment, see [store.Catalogue].
func (s *Store) List(ctx context.Context, after partition.ID, limit int) ([]store.Listed, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	from := []byte{kindCatalogue}
	if after != (partition.ID{}) {
		from = justAfter(appendPartitionKey(nil, kindCatalogue, after))
	}
	at := s.db.NewSnapshot()
	listed, err := s.listAt(at, from, limit)
	if err := errors.Join(err, at.Close()); err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	return listed, nil
}

func (s *Store) listAt(at *pebbledb.Snapshot, from []byte, limit int) (listed []store.Listed, err error) {
	it, err := at.NewIter(&pebbledb.IterOptions{LowerBound: from, UpperBound: []byte{kindCatalogue + 1}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	for ok := it.First(); ok && len(listed) < limit; ok = it.Next() {
		p, err := parsePartitionKey(it.Key())
		if err != nil {
			return nil, err
		}
		h, err := s.readHeld(at, p)
		if err != nil {
			return nil, err
		}
		if h == nil {
			return nil, fmt.Errorf("the catalogue lists %s, which has no row", p)
		}
		listed = append(listed, store.Listed{Partition: p, Epoch: h.epoch, Holder: h.holder, Meta: h.meta})
	}
	return listed, it.Error()
}

// Settings reads a queue's document, see [store.Catalogue].
func (s *Store) Settings(ctx context.Context, q partition.Queue) ([]byte, int64, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, 0, err
	}
	d, err := s.readDocument(q)
	if err != nil || !d.exists {
		return nil, 0, err
	}
	return d.content, d.version, nil
}

func (s *Store) readDocument(q partition.Queue) (document, error) {
	value, found, err := s.read(s.db, appendQueueKey(nil, kindSettings, q))
	if err != nil || !found {
		return document{}, err
	}
	d, err := decodeDocument(value)
	if err != nil {
		return document{}, fmt.Errorf("settings of %s: %w", q, err)
	}
	return d, nil
}

// PutSettings writes a queue's document, see [store.Catalogue].
func (s *Store) PutSettings(ctx context.Context, q partition.Queue, doc []byte, ifVersion int64) (int64, error) {
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	defer s.watch.begin()()
	b := s.db.NewBatch()
	version, err := s.replace(b, q, doc, ifVersion)
	if err != nil {
		return 0, errors.Join(err, b.Close())
	}
	s.sync(b)
	return version, nil
}

// replace writes the document into the log if its version is ifVersion.
func (s *Store) replace(b *pebbledb.Batch, q partition.Queue, doc []byte, ifVersion int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return 0, ErrClosed
	}
	d, err := s.readDocument(q)
	if err != nil {
		return 0, err
	}
	if d.visibleVersion() != ifVersion {
		return 0, store.ErrVersion
	}
	if doc == nil && !d.exists {
		return 0, nil
	}
	d = document{version: d.version + 1, exists: doc != nil, content: doc}
	_ = b.Set(appendQueueKey(nil, kindSettings, q), appendDocument(nil, d), nil)
	return d.visibleVersion(), s.writeLocked(b)
}
