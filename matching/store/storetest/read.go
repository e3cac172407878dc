package storetest

import (
	"context"
	"fmt"
	"sync"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

func partitionsAreApart(s *subject) {
	models := map[partition.ID]*model{}
	all := trickyPartitions()
	call := make([]*row.Mutation, 0, len(all))
	for i, p := range all {
		epoch := s.acquire(anna, p).Epoch
		u := &row.Mutation{
			Partition:    p,
			Epoch:        epoch,
			PutTasks:     rowsOf(task.Priority(i%5+1), 1, uint64(i)+1),
			PutScheduled: []row.Task{failed(aTask(ids(50, 50)[0], 1), at+task.Micros(i))},
			PutLeases:    []row.Lease{aLease(ids(1, 1)[0], 1, uint32(i)+1)},
			PutDead:      []row.DeadTask{{Task: aTask(ids(60, 60)[0], 1), At: task.Micros(i) + 1}},
			PutRequests:  []row.Request{{RequestID: "ask", ID: task.ID(i) + 1, At: at}},
		}
		models[p] = newModel()
		models[p].apply(u)
		call = append(call, u)
	}
	s.commit(call...)
	for p, m := range models {
		s.matches(p, m)
	}
	for i, p := range trickyPartitions() { // emptying every other one leaves the rest
		if i%2 == 0 {
			continue
		}
		u := &row.Mutation{
			Partition:       p,
			Epoch:           1,
			DeleteRanges:    []row.Range{{Priority: task.Priority(i%5 + 1), From: 0, To: ^task.ID(0)}},
			DeleteScheduled: []row.DueKey{{Due: at + task.Micros(i), ID: ids(50, 50)[0]}},
			DeleteLeases:    ids(1, 1),
			DeleteDead:      ids(60, 60),
			DeleteRequests:  []string{"ask"},
		}
		s.commit(u)
		models[p].apply(u)
	}
	for p, m := range models {
		s.matches(p, m)
	}
}

// scanPages reads every kind page by page, with every small limit.
func scanPages(s *subject) {
	w := write(s)
	var u row.Mutation
	for i, id := range ids(1, 7) {
		t := aTask(id, 3)
		t.Payload = make([]byte, 1+100*i)
		u.PutTasks = append(u.PutTasks, row.Task{Task: t})
		u.PutLeases = append(u.PutLeases, aLease(id, 3, 1))
	}
	for i, id := range ids(11, 17) {
		u.PutScheduled = append(u.PutScheduled, failed(aTask(id, 3), at+task.Micros(i/3))) // several of one due time
	}
	for _, id := range ids(21, 27) {
		u.PutDead = append(u.PutDead, died(aTask(id, 3)))
	}
	w.does(u)
	for _, kind := range []row.Kind{row.Tasks, row.Scheduled, row.Leases, row.Dead} {
		for items := 1; items <= 8; items++ {
			w.pages(row.Scan{Kind: kind, Priority: 3, Items: items})
		}
		for _, bytes := range []int{1, 400, 401, 1000, 1500, 100_000} {
			w.pages(row.Scan{Kind: kind, Priority: 3, Items: 100, Bytes: bytes})
		}
	}
}

// pages reads page by page and compares each page.
func (w *writer) pages(scan row.Scan) {
	w.Helper()
	for {
		got := w.scan(orders, scan)
		w.same(fmt.Sprintf("page of scan %+v", scan), got, w.m.scan(scan))
		if !got.More {
			return
		}
		scan.After = last(got, scan.Kind)
	}
}

// last is the position of the last row of a page that has one.
func last(p row.Page, k row.Kind) row.Position {
	switch {
	case len(p.Tasks) > 0 && k == row.Scheduled:
		t := p.Tasks[len(p.Tasks)-1]
		return row.Position{Due: t.Due, ID: t.Task.ID}
	case len(p.Tasks) > 0:
		return row.Position{ID: p.Tasks[len(p.Tasks)-1].Task.ID}
	case len(p.Leases) > 0:
		return row.Position{ID: p.Leases[len(p.Leases)-1].ID}
	default:
		return row.Position{ID: p.Dead[len(p.Dead)-1].Task.ID}
	}
}

func scanBounds(s *subject) {
	w := write(s)
	u := row.Mutation{PutTasks: rowsOf(3, 1, 9)}
	for i, id := range ids(11, 19) {
		u.PutScheduled = append(u.PutScheduled, failed(aTask(id, 3), at+task.Micros(i/2)*10))
	}
	w.does(u)
	for from := range uint64(11) {
		for through := range uint64(11) {
			scan := row.Scan{Kind: row.Tasks, Priority: 3, After: row.Position{ID: task.MakeID(1, from)}, Items: 5}
			if through > 0 {
				scan.Through = task.MakeID(1, through)
			}
			w.pages(scan)
		}
	}
	for due := at - 1; due <= at+50; due++ {
		w.pages(row.Scan{Kind: row.Scheduled, Until: due, Items: 3})
		for _, id := range []task.ID{0, ids(14, 14)[0], ^task.ID(0)} {
			w.pages(row.Scan{Kind: row.Scheduled, After: row.Position{Due: due, ID: id}, Until: at + 30, Items: 100})
		}
	}
	w.same("scan of a partition that nobody took", s.scan(orders.Partition(99), row.Scan{Kind: row.Dead, Items: 1}), row.Page{})
	w.same("get from a partition that nobody took", s.get(orders.Partition(99), 5), []row.Record{{ID: 5}})
}

func scanOfNonsense(s *subject) {
	s.acquire(anna, orders)
	for _, scan := range []row.Scan{
		{Items: 1}, {Kind: row.Dead + 1, Items: 1}, {Kind: row.Dead}, {Kind: row.Dead, Items: -1},
		{Kind: row.Tasks, Items: 1}, {Kind: row.Tasks, Items: 1, Priority: task.MaxPriority + 1},
	} {
		if page, err := s.Store.Scan(context.Background(), orders, scan); err == nil {
			s.Errorf("scan %+v = %s, want an error", scan, show(page))
		}
	}
}

// during calls see over and over while change is called with 0, 1, 2 ... n-1.
func during(n int, change func(int), see func()) {
	var busy sync.WaitGroup
	defer busy.Wait() // also when see ends the test
	done := make(chan struct{})
	busy.Go(func() {
		defer close(done)
		for i := range n {
			change(i)
		}
	})
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		see()
	}
}

// getSeesEachMutationWhole moves a task from kind to kind while it is looked
// for: it is in exactly one place at any moment, and never in none.
func getSeesEachMutationWhole(s *subject) {
	w := write(s)
	t := aTask(ids(1, 1)[0], 3)
	w.does(row.Mutation{PutScheduled: []row.Task{{Task: t, Due: at}}})
	change := func(i int) {
		u := &row.Mutation{Partition: orders, Epoch: 1}
		due := at + task.Micros(i/2)
		if i%2 == 0 {
			u.DeleteScheduled = []row.DueKey{{Due: due, ID: t.ID}}
			u.PutDead = []row.DeadTask{died(t)}
		} else {
			u.DeleteDead = []task.ID{t.ID}
			u.PutScheduled = []row.Task{{Task: t, Due: due + 1}}
		}
		if o := s.Store.Commit(context.Background(), []*row.Mutation{u})[0]; o.Result != store.Stored {
			s.Errorf("commit = %v, %v", o.Result, o.Err)
		}
	}
	during(400, change, func() {
		if rec := w.get(orders, t.ID)[0]; !rec.Found {
			s.Errorf("a task on its way from row to row is nowhere: %s", show(rec))
		}
	})
}

// scanSeesEachMutationWhole adds tasks three by three while they are read.
func scanSeesEachMutationWhole(s *subject) {
	s.acquire(anna, orders)
	change := func(i int) {
		u := &row.Mutation{Partition: orders, Epoch: 1, PutTasks: rowsOf(3, uint64(3*i+1), uint64(3*i+3))}
		if o := s.Store.Commit(context.Background(), []*row.Mutation{u})[0]; o.Result != store.Stored {
			s.Errorf("commit = %v, %v", o.Result, o.Err)
		}
	}
	during(100, change, func() {
		page := s.scan(orders, row.Scan{Kind: row.Tasks, Priority: 3, Items: 1000})
		if len(page.Tasks)%3 != 0 {
			s.Errorf("a scan sees %d rows, a part of a mutation", len(page.Tasks))
		}
	})
}

// scanAmongChanges is law S7: pages over rows that stay, between rows that come
// and go, show each of those that stay once and in order.
func scanAmongChanges(s *subject) {
	s.acquire(anna, orders)
	const n = 60
	var stay row.Mutation
	for i := uint64(1); i <= n; i++ {
		stay.PutLeases = append(stay.PutLeases, aLease(task.MakeID(1, 2*i), 3, 1))
	}
	stay.Partition, stay.Epoch = orders, 1
	s.commit(&stay)
	change := func(i int) {
		id := task.MakeID(1, uint64(i%n)*2+1) // odd: the rows that stay are even
		u := &row.Mutation{Partition: orders, Epoch: 1, PutLeases: []row.Lease{aLease(id, 3, 1)}}
		if i/n%2 == 1 {
			u.PutLeases, u.DeleteLeases = nil, []task.ID{id}
		}
		if o := s.Store.Commit(context.Background(), []*row.Mutation{u})[0]; o.Result != store.Stored {
			s.Errorf("commit = %v, %v", o.Result, o.Err)
		}
	}
	during(4*n, change, func() {
		stayed, previous := 0, task.ID(0)
		for scan := (row.Scan{Kind: row.Leases, Items: 7}); ; {
			page := s.scan(orders, scan)
			for _, l := range page.Leases {
				if l.ID <= previous {
					s.Errorf("lease %s is read after lease %s", l.ID, previous)
				}
				previous = l.ID
				if l.ID.Seq()%2 == 0 {
					stayed++
				}
			}
			if !page.More {
				break
			}
			scan.After.ID = previous
		}
		if stayed != n {
			s.Errorf("pages show %d of %d rows that were there throughout", stayed, n)
		}
	})
}
