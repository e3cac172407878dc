package postgres

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// cut is where a wire breaks the next time that something is sent over it.
type cut int32

const (
	nowhere       cut = iota
	beforeRequest     // the server never gets the statement
	beforeAnswer      // it does, and its answer is lost
	beforeReady       // all of its answer arrives but the word that it is ready again
)

// readyLen is the length of that word, the last of an answer.
const readyLen = 6

// wire is what a store and its server talk over.
type wire struct {
	listener net.Listener
	server   string
	cut      atomic.Int32 // of the next statement
	answered atomic.Int32 // of the answer to the one under way
	broken   atomic.Int32
	sent     atomic.Int32 // statements that the store sent
	copies   sync.WaitGroup
}

// newWire returns a wire to the server of pg, and the options to use it.
func newWire(tb testing.TB, o Options) (*wire, Options) {
	tb.Helper()
	dir, err := os.MkdirTemp("", "wire") //nolint:usetesting // the path of a socket has to be short
	if err != nil {
		tb.Fatal(err)
	}
	const socket = ".s.PGSQL.5432"
	listener, err := new(net.ListenConfig).Listen(tb.Context(), "unix", filepath.Join(dir, socket))
	if err != nil {
		tb.Fatal(err)
	}
	w := &wire{listener: listener, server: filepath.Join(pg.Dir(), socket)}
	w.copies.Go(w.accept)
	tb.Cleanup(func() {
		_ = listener.Close()
		w.copies.Wait()
		_ = os.RemoveAll(dir)
	})
	o.DSN = strings.Replace(o.DSN, pg.Dir(), dir, 1)
	return w, o
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		server, err := new(net.Dialer).DialContext(context.Background(), "unix", w.server)
		if err != nil {
			_ = client.Close()
			return
		}
		w.copies.Go(func() { w.copy(server, client, w.request) })
		w.copies.Go(func() { w.copy(client, server, w.answer) })
	}
}

// copy passes on what arrives until an end is closed or through breaks it.
func (w *wire) copy(to, from net.Conn, through func([]byte) (pass int, broken bool)) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		pass, broken := n, false
		if n > 0 {
			pass, broken = through(buf[:n])
		}
		if _, writeErr := to.Write(buf[:pass]); err != nil || writeErr != nil || broken {
			return
		}
	}
}

// request looks at what the store sends. A cut waits for a prepared statement:
// the pool pings connections that rested for a second, by a simple query.
func (w *wire) request(b []byte) (int, bool) {
	const bind, parse = 'B', 'P'
	if b[0] != bind && b[0] != parse {
		return len(b), false
	}
	w.sent.Add(1)
	next := cut(w.cut.Swap(int32(nowhere)))
	if next == beforeRequest {
		w.broken.Add(1)
		return 0, true
	}
	w.answered.Store(int32(next))
	return len(b), false
}

// answer looks at what the server says to the statement that request let pass.
func (w *wire) answer(b []byte) (int, bool) {
	switch cut(w.answered.Swap(int32(nowhere))) {
	case beforeAnswer:
		w.broken.Add(1)
		return 0, true
	case beforeReady:
		w.broken.Add(1)
		return len(b) - readyLen, true
	default:
		return len(b), false
	}
}

// TestOneRoundTrip: a commit is one message to the server, whatever it changes
// and of however many partitions.
func TestOneRoundTrip(t *testing.T) {
	o := inNewSchema(testOptions(pg.Database(t)))
	migrate(t, o)
	w, o := newWire(t, o)
	s := open(t, o)
	other := orders.Partition(1)
	acquire(t, s, anna, orders.Partition(0), other)
	mutations := func(seq uint64) []*row.Mutation {
		first := everyPart()
		first.PutTasks[0].Task.ID = task.MakeID(1, seq)
		return []*row.Mutation{first, put(other, 1, seq)}
	}
	const commits = 5
	for seq := uint64(10); seq <= 10+commits; seq++ {
		if seq == 11 { // the first one prepared the statement
			w.sent.Store(0)
		}
		for i, o := range s.Commit(context.Background(), mutations(seq)) {
			if o.Result != store.Stored {
				t.Fatalf("mutation %d = %v, %v", i, o.Result, o.Err)
			}
		}
	}
	if n := w.sent.Load(); n != commits {
		t.Errorf("%d commits took %d messages", commits, n)
	}
}

// TestBrokenConnections: wherever a connection breaks, the outcome is unknown,
// and whether the row is there is seen after the partition was taken again.
func TestBrokenConnections(t *testing.T) {
	o := inNewSchema(testOptions(pg.Database(t)))
	migrate(t, o)
	w, o := newWire(t, o)
	s := open(t, o)
	p := orders.Partition(0)
	epoch := acquire(t, s, anna, p)[0].Epoch
	for name, tt := range map[string]struct {
		cut    cut
		stored bool
	}{
		"before the request": {beforeRequest, false},
		"before the answer":  {beforeAnswer, true},
		"before it is ready": {beforeReady, true},
	} {
		t.Run(name, func(t *testing.T) {
			mustStore(t, s, put(p, epoch, 1)) // the connection is there, the statement prepared
			w.cut.Store(int32(tt.cut))
			o := result(s, put(p, epoch, 2))
			if o.Result != store.Unknown || o.Err == nil {
				t.Errorf("commit = %v, %v, want unknown", o.Result, o.Err)
			}
			again := acquire(t, s, anna, p)[0].Epoch
			if got := has(t, s, p, task.MakeID(epoch, 2)); got[0] != tt.stored {
				t.Errorf("the row is there: %v, want %v", got[0], tt.stored)
			}
			epoch = again
			mustStore(t, s, put(p, epoch, 9)) // over a new connection
		})
	}
	if w.broken.Load() != 3 {
		t.Errorf("%d connections broke, want 3", w.broken.Load())
	}
}

// TestBrokenAcquire: a take whose answer was lost leaves an epoch that is not
// ours, so that what we still send under the old one is refused.
func TestBrokenAcquire(t *testing.T) {
	o := inNewSchema(testOptions(pg.Database(t)))
	migrate(t, o)
	w, o := newWire(t, o)
	s := open(t, o)
	p := orders.Partition(0)
	acquire(t, s, anna, p)
	w.cut.Store(int32(beforeAnswer))
	if taken, err := s.Acquire(context.Background(), anna, []partition.ID{p}); err == nil {
		t.Errorf("acquire whose answer was lost = %+v", taken)
	}
	if o := result(s, put(p, 1, 1)); o.Result != store.LostEpoch || o.Owner.Epoch != 2 {
		t.Errorf("commit under the old epoch = %+v", o)
	}
	if taken := acquire(t, s, anna, p)[0]; taken.Epoch != 3 {
		t.Errorf("taken again with epoch %d, want 3", taken.Epoch)
	}
}
