package pebble

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// bencher commits to a store on the real disk, with a real fsync for each commit.
type bencher struct {
	*testing.B
	s     *Store
	p     partition.ID
	noise []byte // payloads are cut from it
	next  uint64
}

func newBencher(b *testing.B) *bencher {
	b.Helper()
	s := open(b, Options{Dir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	b.Cleanup(func() { closeStore(b, s) })
	x := &bencher{B: b, s: s, p: queue.Partition(0), noise: make([]byte, 1<<20), next: 1}
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(x.noise) // does not compress
	if _, err := s.Acquire(context.Background(), holder, []partition.ID{x.p}); err != nil {
		b.Fatal(err)
	}
	return x
}

// adds returns the next n tasks as rows.
func (x *bencher) adds(n int, folded bool) []row.Task {
	rows := make([]row.Task, n)
	for i := range rows {
		id := task.MakeID(1, x.next)
		x.next++
		from := int(x.next*payloadSize) % len(x.noise)
		rows[i].Task = &task.Task{ID: id, Priority: 3, Payload: x.noise[from : from+payloadSize], AddedAt: 1_900_000_000_000_000}
		if folded {
			l := x.lease(id)
			rows[i].Folded = &l
		}
	}
	return rows
}

func (x *bencher) lease(id task.ID) row.Lease {
	return row.Lease{ID: id, Priority: 3, Delivery: 1, Epoch: 1, Duration: 30 * time.Second, Live: true, Identity: "worker-17@host"}
}

func (x *bencher) commit(m row.Mutation) {
	m.Partition, m.Epoch = x.p, 1
	if o := x.s.Commit(context.Background(), []*row.Mutation{&m})[0]; o.Result != store.Stored {
		x.Fatalf("commit = %v, %v", o.Result, o.Err)
	}
}

// measure runs f, which settles n tasks, and reports what a task costs.
func (x *bencher) measure(n int, f func()) {
	x.ReportAllocs()
	before, tasks, start := cpu(), 0, time.Now()
	for x.Loop() {
		f()
		tasks += n
	}
	x.ReportMetric(float64(cpu()-before)/float64(time.Microsecond)/float64(tasks), "us-cpu/task")
	x.ReportMetric(float64(tasks)/time.Since(start).Seconds(), "tasks/s")
}

// cpu is the processor time that the process has used, flushes and compactions
// included.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const payloadSize = 256

var batches = []int{32, 128, 512}

func BenchmarkAdd(b *testing.B) {
	for _, n := range batches {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			x := newBencher(b)
			x.measure(n, func() { x.commit(row.Mutation{PutTasks: x.adds(n, false)}) })
		})
	}
}

// BenchmarkAddLeaseDelete is drain at its dearest: each commit adds n tasks,
// leases those added before and deletes those leased before: 4 records a task.
func BenchmarkAddLeaseDelete(b *testing.B) {
	for _, n := range batches {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			x := newBencher(b)
			var added, leased []row.Task
			x.measure(n, func() {
				m := row.Mutation{PutTasks: x.adds(n, false)}
				for _, r := range added {
					m.PutLeases = append(m.PutLeases, x.lease(r.Task.ID))
				}
				for _, r := range leased {
					m.DeleteTasks = append(m.DeleteTasks, row.TaskKey{Priority: 3, ID: r.Task.ID})
					m.DeleteLeases = append(m.DeleteLeases, r.Task.ID)
				}
				x.commit(m)
				added, leased = m.PutTasks, added
			})
		})
	}
}

// BenchmarkFolded is flow: the lease stands in the task's row, 2 records a task.
func BenchmarkFolded(b *testing.B) {
	for _, n := range batches {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			x := newBencher(b)
			var added []row.Task
			x.measure(n, func() {
				m := row.Mutation{PutTasks: x.adds(n, true)}
				for _, r := range added {
					m.DeleteTasks = append(m.DeleteTasks, row.TaskKey{Priority: 3, ID: r.Task.ID})
				}
				x.commit(m)
				added = m.PutTasks
			})
		})
	}
}

func (x *bencher) scan(s row.Scan) int {
	s.Kind, s.Priority = row.Tasks, 3
	page, err := x.s.Scan(context.Background(), x.p, s)
	if err != nil {
		x.Fatal(err)
	}
	return len(page.Tasks)
}

// BenchmarkScan reads 1,000 of 200,000 tasks, from the start and going on.
func BenchmarkScan(b *testing.B) {
	x := newBencher(b)
	const total, page = 200_000, 1000
	for range total / page {
		x.commit(row.Mutation{PutTasks: x.adds(page, false)})
	}
	after := uint64(0)
	x.measure(page, func() {
		x.scan(row.Scan{After: row.Position{ID: task.MakeID(1, after)}, Items: page})
		after = (after + page) % total
	})
}

// BenchmarkScanAfterDeletes looks for the first task where a million were
// completed: one by one, and then swept by one range besides.
func BenchmarkScanAfterDeletes(b *testing.B) {
	for _, sweep := range []bool{false, true} {
		b.Run(fmt.Sprintf("range=%v", sweep), func(b *testing.B) {
			x := newBencher(b)
			const total, batch = 1_000_000, 2000
			for range total / batch {
				x.commit(row.Mutation{PutTasks: x.adds(batch, false)})
			}
			if err := x.s.db.Flush(); err != nil {
				b.Fatal(err)
			}
			for from := uint64(1); from <= total; from += batch {
				var m row.Mutation
				for i := range uint64(batch) {
					m.DeleteTasks = append(m.DeleteTasks, row.TaskKey{Priority: 3, ID: task.MakeID(1, from+i)})
				}
				x.commit(m)
			}
			if sweep {
				x.commit(row.Mutation{DeleteRanges: []row.Range{{Priority: 3, From: 1, To: task.MakeID(1, total)}}})
			}
			x.commit(row.Mutation{PutTasks: x.adds(1, false)})
			for b.Loop() {
				if n := x.scan(row.Scan{Items: 10}); n != 1 {
					b.Fatalf("the scan finds %d tasks, want 1", n)
				}
			}
		})
	}
}

// BenchmarkGet looks up tasks that are there and tasks that are gone.
func BenchmarkGet(b *testing.B) {
	x := newBencher(b)
	for range 100 {
		x.commit(row.Mutation{PutTasks: x.adds(1000, false)})
	}
	if err := x.s.db.Flush(); err != nil {
		b.Fatal(err)
	}
	for _, first := range []uint64{1, 1_000_000} {
		b.Run(map[bool]string{true: "there", false: "gone"}[first == 1], func(b *testing.B) {
			x.B = b
			seq := first
			x.measure(100, func() {
				ids := make([]task.ID, 100)
				for i := range ids {
					ids[i] = task.MakeID(1, seq+uint64(i)*7)
				}
				seq = first + (seq+1)%1000
				if _, err := x.s.Get(context.Background(), x.p, ids); err != nil {
					b.Fatal(err)
				}
			})
		})
	}
}
