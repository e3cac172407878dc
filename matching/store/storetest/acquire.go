package storetest

import (
	"context"
	"sync"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

func acquireRaisesTheEpoch(s *subject) {
	first := s.acquire(anna, orders)
	s.same("first take", first, store.Acquired{Epoch: 1})
	s.step()
	second := s.acquire(bert, orders)
	s.same("second take", second, store.Acquired{Epoch: 2, Previous: task.Ownership{Holder: anna, Epoch: 1}})
	s.step()
	third := s.acquire(bert, orders)
	s.same("a take from oneself", third, store.Acquired{Epoch: 3, Previous: task.Ownership{Holder: bert, Epoch: 2}})
	s.step()

	many, err := s.Store.Acquire(context.Background(), anna, []partition.ID{orders.Partition(1), orders, orders.Partition(2)})
	if err != nil {
		s.Fatalf("acquire of three: %v", err)
	}
	s.same("three at once", many, []store.Acquired{
		{Epoch: 1},
		{Epoch: 4, Previous: task.Ownership{Holder: bert, Epoch: 3}},
		{Epoch: 1},
	})
	none, err := s.Store.Acquire(context.Background(), anna, nil)
	if err != nil || len(none) != 0 {
		s.Fatalf("acquire of nothing = %v, %v", none, err)
	}
}

// acquireFences is law S1: nothing of an earlier epoch takes effect.
func acquireFences(s *subject) {
	s.acquire(anna, orders)
	m := newModel()
	mine := &row.Mutation{Partition: orders, Epoch: 1, PutTasks: rowsOf(3, 1, 2)}
	s.commit(mine)
	m.apply(mine)

	meta := row.Meta{MayHold: true, Listed: true, Acks: [task.Priorities]task.ID{2: 1}}
	s.commit(&row.Mutation{Partition: orders, Epoch: 1, Meta: &meta})
	taken := s.acquire(bert, orders)
	s.same("metadata at the take", taken.Meta, meta)
	s.step()

	late := &row.Mutation{
		Partition: orders, Epoch: 1, PutTasks: rowsOf(3, 3, 3), DeleteTasks: []row.TaskKey{{Priority: 3, ID: ids(1, 1)[0]}},
		Meta: &row.Meta{Released: true},
	}
	o := s.outcomes(late)[0]
	s.same("outcome of a late commit", o, store.Outcome{
		Result: store.LostEpoch, Owner: task.Ownership{Holder: bert, Epoch: 2},
	})
	s.step()
	s.matches(orders, m)
	s.same("metadata after the late commit", s.acquire(anna, orders).Meta, meta)
}

func acquireClearsReleased(s *subject) {
	s.acquire(anna, orders)
	s.commit(&row.Mutation{Partition: orders, Epoch: 1, Meta: &row.Meta{Released: true, MayHold: true}})
	taken := s.acquire(bert, orders)
	if !taken.Meta.Released {
		s.Error("the taker is not told that the holder had released the partition")
	}
	s.step()
	if again := s.acquire(anna, orders); again.Meta.Released || !again.Meta.MayHold {
		s.Errorf("a take from a holder that had not released finds %+v", again.Meta)
	}
}

// acquireFencesCommitsInFlight races a take against commits of the holder: what
// is there when the take returned is all there will ever be, and it is exactly
// what was answered "stored".
func acquireFencesCommitsInFlight(s *subject) {
	const rounds = 20
	for round := range rounds {
		p := orders.Partition(int32(round))
		s.acquire(anna, p)
		stored := make(chan task.ID, 1000)
		var busy sync.WaitGroup
		busy.Go(func() {
			defer close(stored)
			for _, id := range ids(1, 500) {
				o := s.Store.Commit(context.Background(), []*row.Mutation{{Partition: p, Epoch: 1, PutTasks: []row.Task{aRow(id, 3)}}})[0]
				if o.Result != store.Stored {
					return
				}
				stored <- id
			}
		})
		<-stored // the commits are running
		s.acquire(bert, p)
		atTake := s.scan(p, row.Scan{Kind: row.Tasks, Priority: 3, Items: 1000})
		busy.Wait()
		after := s.scan(p, row.Scan{Kind: row.Tasks, Priority: 3, Items: 1000})
		s.same("rows after the last commit ended", len(after.Tasks), len(atTake.Tasks))
		n := 1 // the one received above
		for range stored {
			n++
		}
		s.same("rows that were answered stored", n, len(after.Tasks))
	}
}
