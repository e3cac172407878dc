package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// bencher commits to a store on a real server that syncs each commit.
type bencher struct {
	*testing.B
	s     *Store
	p     partition.ID
	noise []byte // payloads are cut from it
	next  uint64
}

func newBencher(b *testing.B, o Options) *bencher {
	b.Helper()
	o = inNewSchema(o)
	migrate(b, o)
	x := &bencher{B: b, s: open(b, o), p: orders.Partition(0), noise: make([]byte, 1<<20), next: 1}
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(x.noise) // does not compress
	acquire(b, x.s, anna, x.p)
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

// measure runs f, which settles n tasks, and reports what a task costs here and
// on the server.
func (x *bencher) measure(n int, f func()) {
	x.Helper()
	x.ReportAllocs()
	before, serverBefore := cpu(), serverCPU(x)
	tasks, start := 0, time.Now()
	for x.Loop() {
		f()
		tasks += n
	}
	perTask := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) / float64(tasks) }
	x.ReportMetric(perTask(cpu()-before), "us-client/task")
	x.ReportMetric(perTask(serverCPU(x)-serverBefore), "us-server/task")
	x.ReportMetric(float64(tasks)/time.Since(start).Seconds(), "tasks/s")
}

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func serverCPU(tb testing.TB) time.Duration {
	tb.Helper()
	d, err := pg.CPU()
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

const payloadSize = 256

var batches = []int{1, 32, 128, 512}

// eachBatch runs f for each size of a batch.
func eachBatch(b *testing.B, f func(x *bencher, n int)) {
	b.Helper()
	o := testOptions(pg.Database(b))
	for _, n := range batches {
		b.Run(strconv.Itoa(n), func(b *testing.B) { f(newBencher(b, o), n) })
	}
}

func BenchmarkAdd(b *testing.B) {
	eachBatch(b, func(x *bencher, n int) {
		x.measure(n, func() { x.commit(row.Mutation{PutTasks: x.adds(n, false)}) })
	})
}

// BenchmarkAddLeaseDelete is drain at its dearest: each commit adds n tasks,
// leases those added before and deletes those leased before: 4 records a task.
func BenchmarkAddLeaseDelete(b *testing.B) {
	eachBatch(b, func(x *bencher, n int) {
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

// flow is a commit that adds n tasks with their lease folded in and deletes those
// added before: 2 records a task.
func (x *bencher) flow(n int) func() {
	var added []row.Task
	return func() {
		m := row.Mutation{PutTasks: x.adds(n, true)}
		for _, r := range added {
			m.DeleteTasks = append(m.DeleteTasks, row.TaskKey{Priority: 3, ID: r.Task.ID})
		}
		x.commit(m)
		added = m.PutTasks
	}
}

func BenchmarkFolded(b *testing.B) {
	eachBatch(b, func(x *bencher, n int) { x.measure(n, x.flow(n)) })
}

// BenchmarkFoldedBehindPooler is the same, planned anew for each commit.
func BenchmarkFoldedBehindPooler(b *testing.B) {
	o := throughPooler(b, testOptions(pg.Database(b)))
	for _, n := range batches {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			x := newBencher(b, o)
			x.measure(n, x.flow(n))
		})
	}
}

// BenchmarkLanes has several lanes commit flow, each for a partition of its own.
func BenchmarkLanes(b *testing.B) {
	o := testOptions(pg.Database(b))
	for _, lanes := range []int{1, 2, 4} {
		b.Run(strconv.Itoa(lanes), func(b *testing.B) {
			const n = 32
			x := newBencher(b, o)
			var left atomic.Int64
			x.measure(lanes*n*10, func() { // ten commits a lane
				left.Store(int64(lanes * 10))
				var running sync.WaitGroup
				for lane := range lanes {
					mine := *x
					mine.p, mine.next = orders.Partition(int32(lane)), x.next
					running.Go(func() {
						acquireOnce(&mine)
						for commit := mine.flow(n); left.Add(-1) >= 0; {
							commit()
						}
					})
				}
				running.Wait()
				x.next += lanesStep
			})
		})
	}
}

// lanesStep is more ids than a lane uses in one turn.
const lanesStep = 100_000

// acquireOnce takes the partition if its epoch is not 1 yet.
func acquireOnce(x *bencher) {
	if x.s.keys.get(x.p).epoch == 0 {
		acquire(x.B, x.s, anna, x.p)
	}
}

// BenchmarkPartitions commits one task for each of many partitions at once.
func BenchmarkPartitions(b *testing.B) {
	const n = 200
	x := newBencher(b, testOptions(pg.Database(b)))
	ps := make([]partition.ID, n)
	for i := range ps {
		ps[i] = orders.Partition(int32(i + 1))
	}
	acquire(b, x.s, anna, ps...)
	x.measure(n, func() {
		ms := make([]*row.Mutation, n)
		for i, r := range x.adds(n, false) {
			ms[i] = &row.Mutation{Partition: ps[i], Epoch: 1, PutTasks: []row.Task{r}}
		}
		for _, o := range x.s.Commit(context.Background(), ms) {
			if o.Result != store.Stored {
				b.Fatalf("commit = %v, %v", o.Result, o.Err)
			}
		}
	})
}

// BenchmarkAcquire takes many partitions at once.
func BenchmarkAcquire(b *testing.B) {
	for _, n := range []int{1, 200, 2000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			x := newBencher(b, testOptions(pg.Database(b)))
			ps := make([]partition.ID, n)
			for i := range ps {
				ps[i] = orders.Partition(int32(i))
			}
			for b.Loop() {
				acquire(b, x.s, anna, ps...)
			}
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
	for _, bytes := range []int{0, 16 << 20} {
		b.Run(fmt.Sprintf("bytes=%d", bytes), func(b *testing.B) {
			x := newBencher(b, testOptions(pg.Database(b)))
			const total, page = 200_000, 1000
			for range total / page {
				x.commit(row.Mutation{PutTasks: x.adds(page, false)})
			}
			after := uint64(0)
			x.measure(page, func() {
				x.scan(row.Scan{After: row.Position{ID: task.MakeID(1, after)}, Items: page, Bytes: bytes})
				after = (after + page) % total
			})
		})
	}
}

// BenchmarkScanAfterDeletes looks for the first task where a million were
// completed: from the level that the holder keeps, and from the start.
func BenchmarkScanAfterDeletes(b *testing.B) {
	x := newBencher(b, testOptions(pg.Database(b)))
	const total, batch = 1_000_000, 2000
	for range total / batch {
		x.commit(row.Mutation{PutTasks: x.adds(batch, false)})
	}
	for from := uint64(1); from <= total; from += batch {
		var m row.Mutation
		for i := range uint64(batch) {
			m.DeleteTasks = append(m.DeleteTasks, row.TaskKey{Priority: 3, ID: task.MakeID(1, from+i)})
		}
		x.commit(m)
	}
	x.commit(row.Mutation{PutTasks: x.adds(1, false)})
	for name, after := range map[string]uint64{"from=level": total, "from=start": 0} {
		b.Run(name, func(b *testing.B) {
			x.B = b
			for b.Loop() {
				if n := x.scan(row.Scan{After: row.Position{ID: task.MakeID(1, after)}, Items: 10}); n != 1 {
					b.Fatalf("the scan finds %d tasks, want 1", n)
				}
			}
		})
	}
}

// BenchmarkGet looks up tasks that are there and tasks that are gone.
func BenchmarkGet(b *testing.B) {
	x := newBencher(b, testOptions(pg.Database(b)))
	for range 100 {
		x.commit(row.Mutation{PutTasks: x.adds(1000, false)})
	}
	for name, first := range map[string]uint64{"there": 1, "gone": 1_000_000} {
		b.Run(name, func(b *testing.B) {
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
