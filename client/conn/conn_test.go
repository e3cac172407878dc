package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// network is a server that every address leads to.
type network struct {
	mu       sync.Mutex
	listener *bufconn.Listener
	server   *grpc.Server
	health   *health.Server
	dialled  map[string]int
}

func newNetwork(t *testing.T, opts ...grpc.ServerOption) *network {
	t.Helper()
	n := &network{listener: bufconn.Listen(1 << 16), server: grpc.NewServer(opts...), health: health.NewServer(), dialled: map[string]int{}}
	healthpb.RegisterHealthServer(n.server, n.health)
	go func() { _ = n.server.Serve(n.listener) }()
	t.Cleanup(n.server.Stop)
	return n
}

func (n *network) dial(ctx context.Context, address string) (net.Conn, error) {
	n.mu.Lock()
	n.dialled[address]++
	n.mu.Unlock()
	if address == "away" {
		return nil, errors.New("connection refused")
	}
	return n.listener.DialContext(ctx)
}

func (n *network) dials(address string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dialled[address]
}

func (n *network) pool(o Options) *Pool {
	o.Dial = append(o.Dial, grpc.WithContextDialer(n.dial))
	return New(o)
}

func check(t *testing.T, c *Conn) {
	t.Helper()
	if _, err := healthpb.NewHealthClient(c).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatalf("a call to %s: %v", c.Address(), err)
	}
}

func TestLazyAndShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		p := n.pool(Options{})
		defer p.Close()
		a, again := p.Get("a"), p.Get("a")
		if p.Len() != 0 {
			t.Error("Get opened a connection")
		}
		check(t, a)
		check(t, again)
		check(t, p.Get("b"))
		if p.Len() != 2 || n.dials("a") != 1 || n.dials("b") != 1 {
			t.Errorf("%d connections, dialled %v, want one to each of two", p.Len(), n.dialled)
		}
	})
}

func TestSeveralToAnAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		p := n.pool(Options{PerAddress: 3})
		defer p.Close()
		a := p.Get("a")
		for range 9 {
			check(t, a)
		}
		if p.Len() != 3 || n.dials("a") != 3 {
			t.Errorf("%d connections, %d dials, want 3", p.Len(), n.dials("a"))
		}
		time.Sleep(2 * time.Minute)
		if p.Len() != 0 {
			t.Errorf("%d connections are left unused", p.Len())
		}
	})
}

func TestUnusedIsClosedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		members := map[string]bool{"member": true}
		p := n.pool(Options{Keep: func(a string) bool { return members[a] }})
		defer p.Close()
		check(t, p.Get("member"))
		gone := p.Get("gone")
		check(t, gone)
		time.Sleep(29 * time.Second)
		if p.Len() != 2 {
			t.Errorf("%d connections after 29 s, want 2", p.Len())
		}
		time.Sleep(32 * time.Second)
		if p.Len() != 1 {
			t.Errorf("%d connections after a minute, want only the member's", p.Len())
		}
		check(t, gone) // the handle opens it again
		if p.Len() != 2 || n.dials("gone") != 2 {
			t.Errorf("%d connections, %d dials, want 2 and 2", p.Len(), n.dials("gone"))
		}
	})
}

// TestUsedIsNeverClosed: C2, for a stream that says nothing for long.
func TestUsedIsNeverClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t, grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}))
		p := n.pool(Options{})
		defer p.Close()
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := healthpb.NewHealthClient(p.Get("a")).Watch(ctx, &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute) // pings go on: the server would refuse too many
		n.health.SetServingStatus("", healthpb.HealthCheckResponse_NOT_SERVING)
		if _, err := stream.Recv(); err != nil {
			t.Errorf("the stream broke while it was silent: %v", err)
		}
		cancel()
		_, _ = stream.Recv()
		time.Sleep(2 * time.Minute)
		if p.Len() != 0 {
			t.Errorf("%d connections after the stream ended", p.Len())
		}
	})
}

func TestFailedCallsLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		p := n.pool(Options{})
		defer p.Close()
		away := healthpb.NewHealthClient(p.Get("away"))
		if _, err := away.Check(t.Context(), &healthpb.HealthCheckRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("a call to nowhere: %v", err)
		}
		if stream, err := away.Watch(t.Context(), &healthpb.HealthCheckRequest{}); err == nil {
			if _, err = stream.Recv(); err == nil {
				t.Error("a stream to nowhere brought something")
			}
		}
		time.Sleep(2 * time.Minute)
		if p.Len() != 0 {
			t.Errorf("%d connections are left", p.Len())
		}
	})
}

func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		p := n.pool(Options{})
		c := p.Get("a")
		check(t, c)
		p.Close()
		p.Close()
		if _, err := healthpb.NewHealthClient(c).Check(t.Context(), &healthpb.HealthCheckRequest{}); status.Code(err) != codes.Canceled {
			t.Errorf("a call after Close: %v", err)
		}
		if _, err := healthpb.NewHealthClient(c).Watch(t.Context(), &healthpb.HealthCheckRequest{}); status.Code(err) != codes.Canceled {
			t.Errorf("a stream after Close: %v", err)
		}
		if p.Len() != 0 {
			t.Error("a connection was opened after Close")
		}
	})
}

// TestChurn: nodes come and go; nothing piles up.
func TestChurn(t *testing.T) {
	rounds := 1000
	if os.Getenv("TASKRING_LONG") != "" {
		rounds = 10_000
	}
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		p := n.pool(Options{Linger: time.Second, Every: time.Second})
		defer p.Close()
		most := 0
		for i := range rounds {
			check(t, p.Get(fmt.Sprint("node-", i)))
			time.Sleep(200 * time.Millisecond)
			most = max(most, p.Len())
		}
		if most > 12 { // 2 s of addresses, 5 a second
			t.Errorf("%d connections were open at a time", most)
		}
	})
}

func BenchmarkLookupConnection(b *testing.B) {
	p := New(Options{})
	defer p.Close()
	b.ReportAllocs()
	for b.Loop() {
		l, err := p.use(place{address: "127.0.0.1:1"})
		if err != nil {
			b.Fatal(err)
		}
		p.unuse(l)
	}
}
