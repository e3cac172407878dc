package storetest

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

func (s *subject) list(after partition.ID, limit int) []store.Listed {
	s.Helper()
	listed, err := s.Store.List(context.Background(), after, limit)
	if err != nil {
		s.Fatalf("list after %s: %v", after, err)
	}
	return listed
}

// catalogue lists partitions in order, and only those whose holder wants it.
func catalogue(s *subject) {
	all := trickyPartitions()
	s.same("catalogue of an empty store", len(s.list(partition.ID{}, 10)), 0)
	var want []store.Listed
	for _, p := range slices.Backward(all) { // in another order than the one they are listed in
		s.acquire(anna, p)
	}
	s.same("catalogue of partitions that nobody added to", len(s.list(partition.ID{}, 10)), 0)
	for i, p := range all {
		meta := row.Meta{Listed: i%4 != 3, MayHold: true, Acks: [task.Priorities]task.ID{task.ID(i)}}
		s.commit(&row.Mutation{Partition: p, Epoch: 1, Meta: &meta})
		if meta.Listed {
			want = append(want, store.Listed{Partition: p, Epoch: 1, Holder: anna, Meta: meta})
		}
	}
	s.same("whole catalogue", s.list(partition.ID{}, 1000), want)
	s.same("catalogue up to its length", s.list(partition.ID{}, len(want)), want)
	for _, limit := range []int{1, 2, 5} {
		var got []store.Listed
		for page := s.list(partition.ID{}, limit); len(page) > 0; page = s.list(got[len(got)-1].Partition, limit) {
			if len(page) > limit {
				s.Fatalf("a page of %d has %d entries", limit, len(page))
			}
			got = append(got, page...)
		}
		s.same("catalogue by pages", got, want)
	}
	catalogueChanges(s, want)
}

func catalogueChanges(s *subject, want []store.Listed) {
	s.acquire(bert, want[0].Partition)
	want[0].Epoch, want[0].Holder = 2, bert
	s.step()
	s.same("catalogue after a take", s.list(partition.ID{}, 1000), want)

	gone := want[1]
	gone.Meta.Listed = false
	s.commit(&row.Mutation{Partition: gone.Partition, Epoch: 1, Meta: &gone.Meta})
	s.same("catalogue after an entry left", s.list(partition.ID{}, 1), want[:1])
	s.same("catalogue beginning at the entry that left", s.list(gone.Partition, 1000), want[2:])

	gone.Meta.Listed = true
	s.commit(&row.Mutation{Partition: gone.Partition, Epoch: 1, Meta: &gone.Meta})
	s.same("catalogue after the entry came back", s.list(partition.ID{}, 1000), want)
}

// settings are kept per queue under a version that never names two contents.
func settings(s *subject) {
	q, other := trickyPartitions()[0].Queue, trickyPartitions()[1].Queue
	put := func(doc []byte, ifVersion int64) int64 {
		s.Helper()
		v, err := s.Store.PutSettings(context.Background(), q, doc, ifVersion)
		if err != nil {
			s.Fatalf("put of %q if version %d: %v", doc, ifVersion, err)
		}
		s.step()
		return v
	}
	refused := func(ifVersion int64) {
		s.Helper()
		if v, err := s.Store.PutSettings(context.Background(), q, []byte("late"), ifVersion); !errors.Is(err, store.ErrVersion) {
			s.Errorf("put if version %d = %d, %v, want ErrVersion", ifVersion, v, err)
		}
	}
	has := func(doc []byte, version int64) {
		s.Helper()
		got, v, err := s.Store.Settings(context.Background(), q)
		if err != nil || v != version || !bytes.Equal(got, doc) {
			s.Errorf("settings = %q, %d, %v, want %q, %d", got, v, err, doc, version)
		}
	}
	has(nil, 0)
	refused(1)
	s.same("version after removing nothing", put(nil, 0), int64(0))
	doc := []byte("one")
	first := put(doc, 0)
	copy(doc, "xxx") // the store keeps no caller's bytes
	has([]byte("one"), first)
	refused(0)
	second := put([]byte{}, first)
	if second <= first {
		s.Errorf("version %d follows version %d", second, first)
	}
	has(nil, second) // empty, not missing
	refused(first)
	s.same("version after removal", put(nil, second), int64(0))
	has(nil, 0)
	refused(second)
	if third := put([]byte("three"), 0); third <= second {
		s.Errorf("after a removal version %d follows version %d: a caller that knows %d would write over it", third, second, second)
	}
	if got, v, err := s.Store.Settings(context.Background(), other); got != nil || v != 0 || err != nil {
		s.Errorf("settings of another queue = %q, %d, %v", got, v, err)
	}
}

func identity(s *subject) {
	id := s.Store.ID()
	if id == (task.StoreID{}) {
		s.Error("the store's id is zero")
	}
	s.step()
	s.same("id", s.Store.ID(), id)
}
