package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// errMalformed is why a page token cannot be read.
var errMalformed = errors.New("it is malformed")

// encodeToken and decodeToken make page tokens of a few bytes: opaque to callers,
// in URL-safe base64.
func encodeToken(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func decodeToken(token string) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		return nil, errMalformed
	}
	return b, nil
}

// pageSize cuts the size that a request names to what is allowed.
func (s Settings) pageSize(f *wire.Fields, asked int32) int {
	if asked < 0 {
		f.Addf("page_size", "is %d, it must be at least 1, or 0 for the default, %d", asked, s.PageSize)
	}
	if asked <= 0 {
		return s.PageSize
	}
	return min(int(asked), s.MaxPage)
}

// ListTaskQueues lists the queues that were ever added to.
func (h *Handler) ListTaskQueues(ctx context.Context, r *matchingpb.ListTaskQueuesRequest) (*matchingpb.ListTaskQueuesResponse, error) {
	var f wire.Fields
	ask := engine.Filter{
		Namespace: r.GetNamespace(), Prefix: r.GetNamePrefix(), Type: partition.TaskType(r.GetType()),
		Limit: h.settings().pageSize(&f, r.GetPageSize()),
	}
	if _, known := matchingpb.TaskType_name[int32(r.GetType())]; !known {
		f.Addf("type", "is %d, the task types are 1 (workflow), 2 (activity), 3 (dispatch); 0 lists all", r.GetType())
	}
	if r.GetPageToken() != "" {
		after, err := parseQueueToken(r.GetPageToken())
		if err != nil {
			f.Addf("page_token", "is not one that this method gave out: %v", err)
		}
		ask.After = after
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	listed, more, err := h.cfg.Engine.List(ctx, ask)
	if err != nil {
		return nil, err
	}
	out := &matchingpb.ListTaskQueuesResponse{}
	for _, l := range listed {
		summary := &matchingpb.TaskQueueSummary{TaskQueue: wire.EncodeQueue(l.Queue), Partitions: int32(l.Partitions)}
		if r.GetIncludeStats() {
			summary.Stats = h.loadedStats(l.Queue)
		}
		out.TaskQueues = append(out.TaskQueues, summary)
	}
	if more {
		out.NextPageToken, err = queueToken(listed[len(listed)-1].Queue)
	}
	return out, err
}

func queueToken(q partition.Queue) (string, error) {
	b, err := proto.Marshal(wire.EncodeQueue(q))
	if err != nil {
		return "", task.Errorf(task.Internal, "encoding a page token: %w", err)
	}
	return encodeToken(b), nil
}

func parseQueueToken(token string) (partition.Queue, error) {
	b, err := decodeToken(token)
	if err != nil {
		return partition.Queue{}, err
	}
	var m matchingpb.TaskQueuePartition
	if err := proto.Unmarshal(b, &m); err != nil {
		return partition.Queue{}, errMalformed
	}
	return wire.DecodeQueue("queue", &m)
}

// peekScans bounds how many scans one page of a peek makes, as most tasks may be
// in states that were not asked for.
const peekScans = 20

// PeekTasks shows the tasks of a partition without taking a lease: the stored
// ones by priority and id, then those with a due time, then dead letters.
func (h *Handler) PeekTasks(ctx context.Context, r *matchingpb.PeekTasksRequest) (*matchingpb.PeekTasksResponse, error) {
	var f wire.Fields
	target := f.Target("task_queue", r.GetTaskQueue())
	size := h.settings().pageSize(&f, r.GetPageSize())
	wanted := wantedStates(&f, r.GetStates())
	place := peekPlace{section: 0}
	if r.GetPageToken() != "" && target.IsPartition {
		var err error
		if place, err = parsePeekPlace(r.GetPageToken()); err != nil {
			f.Addf("page_token", "is not one that this method gave out: %v", err)
		}
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	if !target.IsPartition {
		next, err := h.unrouted()
		if err != nil {
			return nil, err
		}
		return next.PeekTasks(ctx, r)
	}
	out := &matchingpb.PeekTasksResponse{}
	_, err := h.look(ctx, target.Partition(), func(q *queue.Queue) (err error) {
		peek := &peek{queue: q, wanted: wanted, size: size, payload: r.GetIncludePayload()}
		out.NextPageToken, err = peek.from(ctx, place)
		out.Tasks = peek.found
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// wantedStates returns the states that are shown; by default all but dead ones.
func wantedStates(f *wire.Fields, asked []matchingpb.TaskState) []wire.State {
	if len(asked) == 0 {
		return []wire.State{wire.Ready, wire.Scheduled, wire.Leased}
	}
	var wanted []wire.State
	for _, s := range asked {
		if s < matchingpb.TaskState_TASK_STATE_READY || s > matchingpb.TaskState_TASK_STATE_DEAD {
			f.Addf("states", "holds %d, the states are 1 (ready), 2 (scheduled), 3 (leased), 4 (dead)", s)
		}
		wanted = append(wanted, wire.State(s))
	}
	return wanted
}

// section is a run of rows that a peek goes through.
type section struct {
	kind     row.Kind
	priority task.Priority
}

// peekSections is the order of a peek: one section per priority, those with a
// due time, dead letters.
func peekSections() []section {
	var all []section
	for p := task.MinPriority; p <= task.MaxPriority; p++ {
		all = append(all, section{row.Tasks, p})
	}
	return append(all, section{kind: row.Scheduled}, section{kind: row.Dead})
}

// peekPlace is where a page begins: behind a row of a section.
type peekPlace struct {
	section int
	after   row.Position
}

func (p peekPlace) token() string {
	b := binary.AppendUvarint(nil, uint64(p.section))
	b = binary.AppendVarint(b, int64(p.after.Due))
	return encodeToken(binary.AppendUvarint(b, uint64(p.after.ID)))
}

func parsePeekPlace(token string) (peekPlace, error) {
	b, err := decodeToken(token)
	if err != nil {
		return peekPlace{}, errMalformed
	}
	s, n := binary.Uvarint(b)
	due, m := binary.Varint(b[max(n, 0):])
	if n <= 0 || m <= 0 || s >= uint64(len(peekSections())) {
		return peekPlace{}, errMalformed
	}
	id, k := binary.Uvarint(b[n+m:])
	if k <= 0 || n+m+k != len(b) {
		return peekPlace{}, errMalformed
	}
	return peekPlace{section: int(s), after: row.Position{Due: task.Micros(due), ID: task.ID(id)}}, nil
}

// peek collects one page.
type peek struct {
	queue   *queue.Queue
	wanted  []wire.State
	size    int
	payload bool
	found   []*matchingpb.TaskDescription
}

// from fills the page and returns the token of the next one, "" at the end.
func (p *peek) from(ctx context.Context, place peekPlace) (string, error) {
	sections := peekSections()
	for scans := 0; place.section < len(sections); scans++ {
		if scans == peekScans || len(p.found) == p.size {
			return place.token(), nil
		}
		s := sections[place.section]
		if !p.wants(s.kind) {
			place = peekPlace{section: place.section + 1}
			continue
		}
		tasks, more, err := p.queue.Peek(ctx, queue.PeekRequest{
			Kind: s.kind, Priority: s.priority, After: place.after, Items: p.size - len(p.found),
		})
		if err != nil {
			return "", task.Errorf(task.StoreUnavailable, "reading tasks: %w", err)
		}
		p.show(tasks)
		if !more || len(tasks) == 0 {
			place = peekPlace{section: place.section + 1}
			continue
		}
		last := tasks[len(tasks)-1]
		place.after = row.Position{Due: last.Due, ID: last.Task.ID}
	}
	return "", nil
}

// wants reports whether rows of the kind may be in a state that was asked for.
func (p *peek) wants(k row.Kind) bool {
	if k == row.Dead {
		return slices.Contains(p.wanted, wire.Dead)
	}
	return slices.ContainsFunc(p.wanted, func(s wire.State) bool {
		return s == wire.Ready || s == wire.Leased || (s == wire.Scheduled && k == row.Scheduled)
	})
}

func (p *peek) show(tasks []queue.Description) {
	for _, t := range tasks {
		if d := describe(p.queue.Partition(), t); slices.Contains(p.wanted, d.State) {
			p.found = append(p.found, d.Encode(p.payload))
		}
	}
}
