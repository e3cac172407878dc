package matching

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/file"
	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/matching/commit"
	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/server"
	"github.com/taskring/taskring/matching/store/pebble"
	"github.com/taskring/taskring/matching/task"
)

// Node is a matching node. See New, Start and Stop; the other methods may be
// called at any time between New and Stop.
type Node struct {
	cfg     Config
	holder  task.Holder
	store   engine.Store
	grpcL   net.Listener
	httpL   net.Listener
	engine  *engine.Engine
	handler *server.Handler
	server  *server.Server
	http    *http.Server
	metrics *metrics

	settings *live.Settings
	registry *dynamicconfig.Registry
	source   *file.Source // of the settings; nil without a file
	began    time.Time

	httpDone chan struct{} // closed when the HTTP server has ended
	stopDone chan struct{} // closed when the node has stopped
	stopErr  error         // set before that

	mu struct {
		sync.Mutex
		state lifecycle
	}
}

// lifecycle only grows.
type lifecycle uint8

const (
	created lifecycle = iota
	started
	stopped
)

// New makes a node. It takes what only one process can have, the ports and the
// data directory, so that the addresses are known before Start and a conflict
// shows up at once. Whoever called New has to call Stop, whether or not the
// node was started.
func New(cfg Config) (*Node, error) {
	n := &Node{cfg: cfg, began: time.Now(), httpDone: make(chan struct{}), stopDone: make(chan struct{})}
	if err := n.cfg.complete(); err != nil {
		return nil, err
	}
	if err := n.build(); err != nil {
		return nil, errors.Join(err, n.release(context.Background()))
	}
	return n, nil
}

// SetUnrouted sets who serves requests that name no partition, before Start. It
// is not part of Config because the routing client, which it usually is, needs
// the node's address or Direct.
func (n *Node) SetUnrouted(u matchingpb.MatchingServiceServer) { n.handler.SetUnrouted(u) }

// Direct serves calls from within the process: no socket, no encoding. Errors
// are those of the domain, not statuses.
func (n *Node) Direct() matchingpb.MatchingServiceServer { return n.handler }

// Holder names this run of the node.
func (n *Node) Holder() task.Holder { return n.holder }

// GRPCAddr is where the service listens, with the port that was taken.
func (n *Node) GRPCAddr() string { return n.grpcL.Addr().String() }

// HTTPAddr is where /livez, /readyz and /metrics are, with the port that was taken.
func (n *Node) HTTPAddr() string { return n.httpL.Addr().String() }

// Start begins to serve. When it returns the node is ready; partitions that may
// hold tasks are loaded meanwhile. A node starts once.
func (n *Node) Start(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.state != created {
		return errors.New("matching: the node was started or stopped before")
	}
	n.mu.state = started
	if n.source != nil {
		n.source.Start()
	}
	n.engine.Start()
	go n.serveHTTP()
	n.server.Serve(n.grpcL)
	n.server.SetServing(true)
	n.cfg.Logger.Info("the node serves", "grpc_addr", n.GRPCAddr(), "http_addr", n.HTTPAddr(),
		"node", n.holder.Node, "run", n.holder.RunID)
	return nil
}

// Stop ends the node in good order: it is not ready any more, polls end with
// SHUTDOWN, calls that run are answered, what is decided is written, partitions
// are released, the store is closed. Calls get half of the time until ctx ends,
// the rest goes to the store. What does not end by then is broken off; nothing
// that was answered is lost by that. Stop returns when ctx ends whatever hangs,
// a disk for example: then the process should end too, as parts of the node may
// still run. Stop may be called before Start; when it is called twice the second
// call waits for the first.
func (n *Node) Stop(ctx context.Context) error {
	n.mu.Lock()
	before := n.mu.state
	n.mu.state = stopped
	n.mu.Unlock()
	if before != stopped {
		go func() {
			defer close(n.stopDone)
			n.stopErr = n.stop(ctx, before)
		}()
	}
	select {
	case <-n.stopDone:
		return n.stopErr
	case <-ctx.Done():
		return fmt.Errorf("matching: the node does not stop, something in it hangs: %w", context.Cause(ctx))
	}
}

// stop stops a node that was in the given state. It means to be done before ctx
// ends, as giving up what hangs takes a moment too.
func (n *Node) stop(ctx context.Context, before lifecycle) error {
	began := time.Now()
	ctx, cancel := partOf(ctx, 0.9)
	defer cancel()
	calls, callsEnd := partOf(ctx, 0.5)
	err := n.server.Stop(calls)
	callsEnd()
	left := n.engine.Stop(ctx)
	err = errors.Join(err, left)
	if errors.Is(left, commit.ErrAbandoned) {
		n.store = nil // a commit is still inside it; opening it again recovers
	}
	if before == started {
		err = errors.Join(err, n.http.Close())
		<-n.httpDone
	}
	err = errors.Join(err, n.release(context.WithoutCancel(ctx)))
	if err != nil {
		n.cfg.Logger.Warn("the node has stopped, not in good order", "took", time.Since(began), "error", err)
		return err
	}
	n.cfg.Logger.Info("the node has stopped", "took", time.Since(began))
	return nil
}

func (n *Node) openStore() (engine.Store, error) {
	began := time.Now()
	commits := n.commitSettings()
	s, err := pebble.Open(pebble.Options{
		Dir: absolute(n.cfg.DataDir), Logger: n.cfg.Logger, OnFatal: n.cfg.OnStoreBroken,
		CommitDeadline: func() time.Duration { return commits().Deadline },
	})
	if err != nil {
		return nil, err
	}
	n.cfg.Logger.Info("the store is open", "dir", absolute(n.cfg.DataDir), "took", time.Since(began))
	return s, nil
}

// build makes the parts, lowest first.
func (n *Node) build() (err error) {
	cfg := &n.cfg
	var tcp net.ListenConfig
	if n.grpcL, err = tcp.Listen(context.Background(), "tcp", cfg.GRPCAddr); err != nil {
		return fmt.Errorf("the gRPC address cannot be taken: %w", err)
	}
	if n.httpL, err = tcp.Listen(context.Background(), "tcp", cfg.HTTPAddr); err != nil {
		return fmt.Errorf("the HTTP address cannot be taken: %w", err)
	}
	if n.metrics, err = newMetrics(cfg); err != nil {
		return err
	}
	if err = n.openSettings(); err != nil {
		return err
	}
	if n.store = cfg.Store; n.store == nil {
		if n.store, err = n.openStore(); err != nil {
			return err
		}
	}
	n.holder = task.Holder{Node: cfg.Name, RunID: rand.Text(), Address: advertised(cfg.GRPCAddr, n.grpcL.Addr())}
	n.engine, err = engine.New(engine.Config{
		Store: n.store, Holder: n.holder, Logger: cfg.Logger, Meter: n.metrics.meter(),
		Commit:   commit.Config{Lanes: cfg.CommitLanes, Settings: n.commitSettings()},
		Settings: n.engineSettings(), PerQueue: n.enginePerQueue, QueueSettings: n.queueSettings,
		Version: func() any { return n.settings.Snapshot() },
	})
	if err != nil {
		return err
	}
	n.handler, err = server.NewHandler(server.HandlerConfig{
		Engine: n.engine, Healthy: n.healthy, Meter: n.metrics.meter(),
		Settings: n.serverSettings(), PerQueue: n.serverPerQueue,
		About: server.About{
			HTTPAddress: n.HTTPAddr(), Version: cfg.Version, StartedAt: n.began,
			Registry: n.registry, Snapshot: n.settings.Snapshot, Status: n.settingsStatus,
		},
	})
	if err != nil {
		return err
	}
	n.server, err = server.New(server.Config{
		Handler: n.handler, Reflection: !cfg.NoReflection, Logger: cfg.Logger, Meter: n.metrics.meter(),
	})
	if err != nil {
		return err
	}
	n.http = n.newHTTP()
	return nil
}

// partOf returns a context that ends when that part of the time until ctx ends is
// over.
func partOf(ctx context.Context, part float64) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithTimeout(ctx, time.Duration(part*float64(time.Until(deadline))))
	}
	return context.WithCancel(ctx)
}

// release gives back what New took.
func (n *Node) release(ctx context.Context) error {
	var errs []error
	for _, l := range []net.Listener{n.grpcL, n.httpL} {
		if l == nil {
			continue
		}
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if n.source != nil {
		errs = append(errs, n.source.Stop())
	}
	if n.metrics != nil {
		errs = append(errs, n.metrics.close(ctx))
	}
	if n.store != nil {
		errs = append(errs, n.store.Close())
	}
	return errors.Join(errs...)
}

// healthy returns why the store takes no writes now, or nil.
func (n *Node) healthy() error {
	if s, ok := n.store.(interface{ Healthy() error }); ok {
		return s.Healthy()
	}
	return nil
}
