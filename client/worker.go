package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// Task is a task at a worker.
type Task struct {
	ID        task.ID
	Payload   []byte
	Headers   map[string]string
	Priority  task.Priority
	Attempt   int       // failures and lease expiries so far, plus 1
	Delivery  int       // hand-outs so far, this one included
	AddedAt   time.Time // by the clock of the node
	Partition partition.ID

	token task.Token
}

// Token returns what settles the task, for programs other than this worker. The
// worker still settles it when the handler returns.
func (t *Task) Token() []byte { return t.token.Append(nil) }

func newTask(g wire.Granted) *Task {
	return &Task{
		ID: g.Grant.ID, Payload: g.Task.Payload, Headers: g.Task.Headers, Priority: g.Task.Priority,
		Attempt: int(g.Attempt), Delivery: int(g.Grant.Delivery), AddedAt: g.Task.AddedAt.Time(), Partition: g.Partition,
		token: g.Token(),
	}
}

// Causes of the end of a handler's context, see context.Cause.
var (
	// ErrLeaseLost: the lease ran out or the task was handed to another worker.
	// What the handler returns is dropped, but for success: work that is done
	// still counts if nobody else has the task.
	ErrLeaseLost = errors.New("the lease of the task is lost")
	// ErrTaskCancelled: the task was cancelled. What the handler returns is
	// dropped.
	ErrTaskCancelled = errors.New("the task was cancelled")
	// ErrDrainTimeout: the worker stops and its drain timeout passed. A task
	// whose handler then returns an error is released.
	ErrDrainTimeout = errors.New("the worker stops and its drain timeout passed")
)

// ErrRelease gives the task back unworked when a handler returns it, also
// wrapped: no attempt is counted and it may be handed out again at once.
var ErrRelease = errors.New("give the task back unworked")

// NonRetryable marks a handler's error: the task goes to the dead letters at
// once, whatever attempts are left. nil stays nil.
func NonRetryable(err error) error {
	if err == nil {
		return nil
	}
	return &failureError{err: err, nonRetryable: true}
}

// RetryAfter marks a handler's error: the next attempt begins after d at the
// earliest, in place of what the task's retry policy says. nil stays nil.
func RetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &failureError{err: err, after: max(d, 0), hasAfter: true}
}

// failureError says how a task is to be failed.
type failureError struct {
	err          error
	nonRetryable bool
	after        time.Duration
	hasAfter     bool
}

func (e *failureError) Error() string { return e.err.Error() }
func (e *failureError) Unwrap() error { return e.err }

// Handler works on a task. It runs in a goroutine of its own, as many at a time
// as the worker's Concurrency.
//
// nil completes the task, an error fails it, see also [NonRetryable],
// [RetryAfter] and [ErrRelease]; a panic is a failure. The lease is extended for
// as long as the handler runs. The context ends when the task is no longer the
// handler's, with the cause why; it does not end when the worker merely stops.
type Handler func(ctx context.Context, t *Task) error

// WorkerOptions of a [Worker]. Queue and Handler must be set; for the rest the
// zero value of a field means its default.
type WorkerOptions struct {
	// Queue is where tasks come from, out of all of its partitions.
	Queue partition.Queue
	// Handler works on them.
	Handler Handler
	// Concurrency is how many handlers run at a time at most, default 16. The
	// worker holds no task that it has no free handler for.
	Concurrency int
	// Identity names the worker to people, default the client's.
	Identity string
	// LeaseDuration replaces that of the tasks, 1 s to 12 h. Default: the
	// tasks' own.
	LeaseDuration time.Duration
	// DrainTimeout is how long handlers may go on once Run's context ended,
	// default 30 s. Then their contexts end.
	DrainTimeout time.Duration
	// PollWait is how long a poll waits for a task, default 1 min.
	PollWait time.Duration
	// PollsPerPartition is how many polls a partition gets, default 2: while
	// one brings a task, the other one is there for the next.
	PollsPerPartition int
	// OnFailure, when set, is told of each task that a handler failed, once the
	// node has taken that in. Handlers' goroutines call it, several at a time; it
	// must not block.
	OnFailure func(t *Task, f Failure)
	// Logger, default the client's.
	Logger *slog.Logger
}

// Failure is what became of a task that its handler failed.
type Failure struct {
	// Err is what the handler returned, or its panic.
	Err error
	// Dead: there are no attempts left, the task is a dead letter now.
	Dead bool
	// Next is when the task is handed out again at the earliest; zero when Dead.
	Next time.Time
}

func (o WorkerOptions) withDefaults(c *Client) WorkerOptions {
	setDefault(&o.Concurrency, 16)
	setDefault(&o.DrainTimeout, 30*time.Second)
	setDefault(&o.PollWait, time.Minute)
	setDefault(&o.PollsPerPartition, 2)
	if o.Identity == "" {
		o.Identity = c.options.Identity
	}
	if o.Logger == nil {
		o.Logger = c.log
	}
	return o
}

// Worker takes tasks of one queue and gives them to a handler.
type Worker struct {
	client  *Client
	options WorkerOptions
}

// NewWorker returns a worker, or an error that names what is wrong with the
// options.
func NewWorker(c *Client, options WorkerOptions) (*Worker, error) {
	if err := options.Queue.Validate(); err != nil {
		return nil, fmt.Errorf("creating a worker: %w", err)
	}
	if options.Handler == nil {
		return nil, errors.New("creating a worker: there is no Handler")
	}
	limits := wire.Limits{}.WithDefaults()
	if d := options.LeaseDuration; d != 0 && (d < limits.MinLease || d > limits.MaxLease) {
		return nil, fmt.Errorf("creating a worker: LeaseDuration is %v, it must be between %v and %v, or 0 for the tasks' own", d, limits.MinLease, limits.MaxLease)
	}
	return &Worker{client: c, options: options.withDefaults(c)}, nil
}

// Run takes and works on tasks until the context ends or the server tells the
// worker to stop. Then it takes no more, gives back what still arrives, and lets
// the running handlers finish and settle, for as long as DrainTimeout. It
// returns when all have, or with an error that says how many did not.
//
// Run may be called again after it returned, and by several goroutines.
func (w *Worker) Run(ctx context.Context) error {
	r := newRun(ctx, w)
	r.goroutines.Go(r.beat)
	r.adjust() //nolint:contextcheck // polls outlive ctx: they are cancelled one by one
	select {
	case <-ctx.Done():
	case <-r.told:
	}
	return r.drain() //nolint:contextcheck // ctx has ended
}
