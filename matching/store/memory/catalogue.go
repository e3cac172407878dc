package memory

import (
	"cmp"
	"context"
	"slices"

	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/partition"
)

// document is a queue's settings. One that was removed keeps its version, so
// that no version ever names two contents.
type document struct {
	content []byte
	exists  bool
	version int64
}

// List lists the catalogue, see [store.Catalogue].
func (s *Store) List(ctx context.Context, after partition.ID, limit int) ([]store.Listed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readyLocked(ctx); err != nil {
		return nil, err
	}
	var listed []store.Listed
	for p, r := range s.mu.partitions {
		if r.meta.Listed && (after == (partition.ID{}) || comparePartitions(p, after) > 0) {
			listed = append(listed, store.Listed{Partition: p, Epoch: r.epoch, Holder: r.holder, Meta: r.meta})
		}
	}
	slices.SortFunc(listed, func(a, b store.Listed) int { return comparePartitions(a.Partition, b.Partition) })
	return listed[:min(max(limit, 0), len(listed))], nil
}

func comparePartitions(a, b partition.ID) int {
	return cmp.Or(
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Type, b.Type),
		cmp.Compare(a.Number, b.Number),
	)
}

// Settings reads a queue's document, see [store.Catalogue].
func (s *Store) Settings(ctx context.Context, q partition.Queue) ([]byte, int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readyLocked(ctx); err != nil {
		return nil, 0, err
	}
	d := s.mu.settings[q]
	if !d.exists {
		return nil, 0, nil
	}
	return slices.Clone(d.content), d.version, nil
}

// PutSettings writes a queue's document, see [store.Catalogue].
func (s *Store) PutSettings(ctx context.Context, q partition.Queue, doc []byte, ifVersion int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.readyLocked(ctx); err != nil {
		return 0, err
	}
	d := s.mu.settings[q]
	if visible := d.visibleVersion(); visible != ifVersion {
		return 0, store.ErrVersion
	}
	if doc == nil && !d.exists {
		return 0, nil
	}
	d = document{content: slices.Clone(doc), exists: doc != nil, version: d.version + 1}
	s.mu.settings[q] = d
	return d.visibleVersion(), nil
}

// visibleVersion is the version that callers see: 0 for no document.
func (d document) visibleVersion() int64 {
	if !d.exists {
		return 0
	}
	return d.version
}
