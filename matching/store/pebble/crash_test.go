package pebble

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/store/memory"
	"github.com/taskring/taskring/matching/store/storetest"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

var (
	queue  = partition.Queue{Namespace: "shop", Name: "orders", Type: partition.Activity}
	holder = task.Holder{Node: "anna", RunID: "run 1", Address: "localhost:1"}
)

// step is one call of a story. Exactly one field is set.
type step struct {
	acquire []partition.ID
	commit  []*row.Mutation
	doc     []byte
	settle  func(*Store) error // flush or compact: changes nothing that can be read
}

func (c step) play(s storetest.Store) error {
	ctx := context.Background()
	switch {
	case c.acquire != nil:
		_, err := s.Acquire(ctx, holder, c.acquire)
		return err
	case c.commit != nil:
		for _, o := range s.Commit(ctx, c.commit) {
			if o.Result != store.Stored {
				return fmt.Errorf("commit = %v, %w", o.Result, o.Err)
			}
		}
		return nil
	case c.doc != nil:
		_, version, err := s.Settings(ctx, queue)
		if err == nil {
			_, err = s.PutSettings(ctx, queue, c.doc, version)
		}
		return err
	}
	if durable, ok := s.(*Store); ok {
		return c.settle(durable)
	}
	return nil
}

const crashPartitions = 3

// crashStory draws a story in which tasks are added, leased, failed, completed
// and swept away by ranges.
func crashStory(rng *rand.Rand, steps int) []step {
	all := []partition.ID{queue.Partition(0), queue.Partition(1), queue.Partition(2)}
	story := []step{{acquire: all}}
	epochs := map[partition.ID]task.Epoch{all[0]: 1, all[1]: 1, all[2]: 1}
	last := map[partition.ID]uint64{} // sequence numbers of task rows
	for len(story) < steps {
		switch n := rng.IntN(20); n {
		case 0:
			p := all[rng.IntN(len(all))]
			epochs[p]++
			story = append(story, step{acquire: []partition.ID{p}})
		case 1:
			story = append(story, step{settle: func(s *Store) error { return s.db.Flush() }})
		case 2:
			story = append(story, step{settle: (*Store).compact})
		case 3:
			story = append(story, step{doc: fmt.Appendf(nil, "document %d", len(story))})
		default:
			some := rng.Perm(len(all))[:1+rng.IntN(len(all))]
			ms := make([]*row.Mutation, 0, len(some))
			for _, i := range some {
				m := crashMutation(rng, last[all[i]])
				m.Partition, m.Epoch = all[i], epochs[all[i]]
				last[all[i]] += uint64(len(m.PutTasks))
				ms = append(ms, m)
			}
			story = append(story, step{commit: ms})
		}
	}
	return story
}

// crashMutation draws a mutation of a partition whose task rows have the
// sequence numbers 1 .. last.
func crashMutation(rng *rand.Rand, last uint64) *row.Mutation {
	m := &row.Mutation{Meta: &row.Meta{MayHold: true, Listed: true}}
	for i := range uint64(1 + rng.IntN(5)) {
		payload := make([]byte, 1+rng.IntN(3000)) // a commit spans blocks of the log
		t := &task.Task{ID: task.MakeID(1, last+i+1), Priority: 3, Payload: payload}
		m.PutTasks = append(m.PutTasks, row.Task{Task: t})
	}
	if last == 0 {
		return m
	}
	old := task.MakeID(1, 1+rng.Uint64N(last))
	switch rng.IntN(4) {
	case 0:
		m.PutLeases = []row.Lease{{ID: old, Priority: 3, Delivery: 1 + rng.Uint32N(9), Live: true}}
	case 1:
		m.DeleteTasks = []row.TaskKey{{Priority: 3, ID: old}}
		m.DeleteLeases = []task.ID{old}
	case 2:
		due := task.Micros(1 + rng.Int64N(100))
		m.DeleteTasks = []row.TaskKey{{Priority: 3, ID: old}}
		m.PutScheduled = []row.Task{{Task: &task.Task{ID: old, Priority: 3, Attempts: 1}, Due: due}}
	case 3:
		m.DeleteRanges = []row.Range{{Priority: 3, From: 1, To: old}}
		m.PutDead = []row.DeadTask{{Task: &task.Task{ID: old, Priority: 3}, Reason: "swept"}}
	}
	return m
}

// dump writes down all that can be read of the store, and of the takes what a
// further take tells.
func dump(s storetest.Store) (string, error) {
	ctx := context.Background()
	var b strings.Builder
	for n := range int32(crashPartitions) {
		p := queue.Partition(n)
		for _, kind := range []row.Kind{row.Tasks, row.Scheduled, row.Leases, row.Dead} {
			page, err := s.Scan(ctx, p, row.Scan{Kind: kind, Priority: 3, Items: 1 << 20})
			if err != nil {
				return "", err
			}
			fmt.Fprintf(&b, "%d %s:", n, kind)
			for _, t := range page.Tasks {
				fmt.Fprintf(&b, " %d/%d(%d)", t.Task.ID, t.Due, len(t.Task.Payload))
			}
			fmt.Fprintf(&b, "%+v", page.Leases)
			for _, d := range page.Dead {
				fmt.Fprintf(&b, " %d", d.Task.ID)
			}
			b.WriteByte('\n')
		}
	}
	listed, err := s.List(ctx, partition.ID{}, 100)
	if err != nil {
		return "", err
	}
	doc, version, err := s.Settings(ctx, queue)
	fmt.Fprintf(&b, "listed %+v\nsettings %d %s\n", listed, version, doc)
	for n := range int32(crashPartitions) {
		taken, acquireErr := s.Acquire(ctx, holder, []partition.ID{queue.Partition(n)})
		err = errors.Join(err, acquireErr)
		fmt.Fprintf(&b, "%d taken %+v\n", n, taken)
	}
	return b.String(), err
}

// crash is what the disk held at some moment: at least the first steps that had
// returned, at most those that had begun.
type crash struct {
	fs              *vfs.MemFS
	returned, begun int
	what            string
}

// crasher is a disk that is copied inside every sync, before the sync does its
// work: once with nothing that was not synced, once with some of it.
type crasher struct {
	disk *vfs.MemFS

	mu struct {
		sync.Mutex
		rng             *rand.Rand
		returned, begun int
		crashes         []crash
	}
}

func newCrasher(seed uint64) *crasher {
	c := &crasher{disk: vfs.NewCrashableMem()}
	c.mu.rng = rand.New(rand.NewPCG(seed, 1))
	return c
}

// before is called before each operation on the disk; it never fails one.
func (c *crasher) before(op errorfs.Op) error {
	if !isSync(op) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	returned := c.mu.returned // of a sync that runs beside a step only bounds are known
	for _, percent := range []int{0, 1 + c.mu.rng.IntN(99)} {
		copied := c.disk.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: c.mu.rng})
		c.mu.crashes = append(c.mu.crashes, crash{
			fs: copied, returned: returned, begun: c.mu.begun,
			what: fmt.Sprintf("sync of %s with %d %% of what was not synced", op.Path, percent),
		})
	}
	return nil
}

func (c *crasher) fs() vfs.FS { return inject(c.disk, c.before) }

func (c *crasher) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.begun++
}

func (c *crasher) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.returned++
}

// states plays stories to a store in memory, to compare with.
type states struct {
	story []step
	known map[int]string
}

// after returns the dump after the first n steps.
func (w *states) after(t *testing.T, n int) string {
	t.Helper()
	if d, ok := w.known[n]; ok {
		return d
	}
	s := memory.New(memory.Options{})
	for _, c := range w.story[:n] {
		if err := c.play(s); err != nil {
			t.Fatal(err)
		}
	}
	d, err := dump(s)
	if err != nil {
		t.Fatal(err)
	}
	w.known[n] = d
	return d
}

// TestCrashInsideEverySync is law S3: after a crash everything that was answered
// is there, and what was not is there whole or not at all.
func TestCrashInsideEverySync(t *testing.T) {
	seeds := uint64(2)
	if os.Getenv("TASKRING_LONG") != "" {
		seeds = 100
	}
	for seed := range seeds {
		crashes := crashEverywhere(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
		t.Logf("seed %d: %d crashes", seed, crashes)
	}
}

// crashEverywhere plays the story of a seed and looks at all its crashes.
func crashEverywhere(t *testing.T, seed uint64) int {
	t.Helper()
	want := &states{story: crashStory(rand.New(rand.NewPCG(seed, 0)), 50), known: map[int]string{}}
	c := newCrasher(seed)
	s := open(t, testOptions(c.fs()))
	for i, next := range want.story {
		c.begin()
		if err := next.play(s); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		c.end()
	}
	closeStore(t, s)
	crashes := c.mu.crashes
	for i, x := range crashes {
		// Every tenth one crashes again, inside each sync of its recovery.
		for _, y := range recoverFrom(t, want, x, i%10 == 0) {
			recoverFrom(t, want, y, false)
		}
		if t.Failed() {
			break
		}
	}
	return len(crashes)
}

// recoverFrom opens what a crash left, compares it with the states that it may
// be, and returns the crashes of the recovery when they are wanted.
func recoverFrom(t *testing.T, want *states, x crash, again bool) []crash {
	t.Helper()
	c := &crasher{disk: x.fs}
	c.mu.rng = rand.New(rand.NewPCG(uint64(x.begun), 2))
	c.mu.returned, c.mu.begun = x.returned, x.begun
	o := testOptions(x.fs)
	if again {
		o.FS = c.fs()
	}
	s, err := Open(o)
	if err != nil {
		t.Errorf("crash in %s after step %d: %v", x.what, x.returned, err)
		return nil
	}
	crashes := c.mu.crashes // those of the opening; dump writes
	got, err := dump(s)
	closeStore(t, s)
	if err != nil {
		t.Errorf("crash in %s after step %d: %v", x.what, x.returned, err)
		return nil
	}
	for n := x.returned; n <= x.begun; n++ {
		if got == want.after(t, n) {
			return crashes
		}
	}
	t.Errorf("crash in %s: after step %d of %d is found\n%s\nwant\n%s", x.what, x.returned, x.begun, got, want.after(t, x.returned))
	return nil
}

// TestIdentityIsDurable shows that the store's id survives from the moment at
// which it can be asked for.
func TestIdentityIsDurable(t *testing.T) {
	disk := vfs.NewCrashableMem()
	s := open(t, testOptions(disk))
	defer closeStore(t, s)
	again := open(t, testOptions(disk.CrashClone(vfs.CrashCloneCfg{})))
	defer closeStore(t, again)
	if s.ID() != again.ID() {
		t.Errorf("the store %x is %x after a crash", s.ID(), again.ID())
	}
}

// TestTornTailAndCorruption cuts the log short, which a crash does, and damages
// it in its middle, which no crash does.
func TestTornTailAndCorruption(t *testing.T) {
	story := crashStory(rand.New(rand.NewPCG(1, 1)), 1)
	for i := range uint64(40) {
		m := crashMutation(rand.New(rand.NewPCG(2, i)), 0)
		for j := range m.PutTasks {
			m.PutTasks[j].Task.ID += task.ID(10 * i)
		}
		m.Partition, m.Epoch = queue.Partition(0), 1
		story = append(story, step{commit: []*row.Mutation{m}})
	}
	want := &states{story: story, known: map[int]string{}}
	disk := vfs.NewCrashableMem()
	s := open(t, testOptions(disk))
	defer closeStore(t, s)
	for _, c := range story {
		if err := c.play(s); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		name    string
		damage  func(log []byte) []byte
		corrupt bool
	}{
		{"cut", func(log []byte) []byte { return log[:len(log)-100] }, false},
		{"cut to nothing", func(log []byte) []byte { return log[:0] }, false},
		{"garbage after the end", func(log []byte) []byte { return append(log, "garbage after the last piece"...) }, false},
		{"flipped in the middle", func(log []byte) []byte { log[len(log)/2] ^= 1; return log }, true},
	} {
		copied := disk.CrashClone(vfs.CrashCloneCfg{})
		rewriteLog(t, copied, tc.damage)
		damaged, err := Open(testOptions(copied))
		if (err != nil) != tc.corrupt {
			t.Errorf("%s: open: %v", tc.name, err)
		}
		if tc.corrupt && err != nil && !strings.Contains(err.Error(), `"data/store" is corrupt`) {
			t.Errorf("%s: the error %q does not say what is corrupt", tc.name, err)
		}
		if err != nil {
			continue
		}
		got, err := dump(damaged)
		closeStore(t, damaged)
		found := false
		for n := range len(story) + 1 {
			found = found || got == want.after(t, n)
		}
		if err != nil || !found {
			t.Errorf("%s: what is found is no state that ever was, %v:\n%s", tc.name, err, got)
		}
	}
}

// rewriteLog changes the contents of the newest write-ahead log.
func rewriteLog(t *testing.T, fs *vfs.MemFS, change func([]byte) []byte) {
	t.Helper()
	names, err := fs.List("data/store")
	if err != nil {
		t.Fatal(err)
	}
	newest := ""
	for _, name := range names {
		if strings.HasSuffix(name, ".log") {
			newest = max(newest, "data/store/"+name)
		}
	}
	log := readFile(t, fs, newest)
	f, err := fs.Create(newest, vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(change(log))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func readFile(t *testing.T, fs *vfs.MemFS, name string) []byte {
	t.Helper()
	info, err := fs.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fs.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	content := make([]byte, info.Size())
	_, err = f.ReadAt(content, 0)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return content
}
