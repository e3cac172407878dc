package server

import (
	"context"
	"strconv"

	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// verb is what is done with grants of one partition: complete, fail, release,
// heartbeat. It starts the call; the result is waited for later.
type verb func(q *queue.Queue, grants []task.Grant) *queue.Call

// settling is one batch of grants on its way: items numbered from 0, their
// grants handed to one or more partitions.
type settling struct {
	results []queue.Result
	calls   []startedCall
	whole   error // no item was tried, for this reason
}

type startedCall struct {
	call  *queue.Call
	items []int // positions of the call's grants in the batch; nil: as they are
}

// wait waits for all calls of the batch.
func (s *settling) wait(ctx context.Context) {
	for _, c := range s.calls {
		for j, r := range c.call.Wait(ctx) {
			i := j
			if c.items != nil {
				i = c.items[j]
			}
			s.results[i] = r
		}
	}
}

// errors returns the errors of the items, ascending, and of the whole batch.
func (s *settling) errors() (items []*matchingpb.ItemError, whole *matchingpb.ItemError) {
	if s.whole != nil {
		return nil, wire.ItemErrorOf(0, s.whole)
	}
	for i, r := range s.results {
		if r.Err != nil {
			items = append(items, wire.ItemErrorOf(i, r.Err))
		}
	}
	return items, nil
}

// one settles the grant of a single call's token.
func (h *Handler) one(ctx context.Context, token []byte, do verb) (queue.Result, error) {
	t, err := h.token("token", token)
	if err != nil {
		return queue.Result{}, err
	}
	var result queue.Result
	err = h.on(ctx, t.Partition, engine.Settle, func(q *queue.Queue) error {
		result = do(q, []task.Grant{t.Grant}).Wait(ctx)[0]
		return result.Err
	})
	return result, err
}

// token reads a token and refuses one of another store.
func (h *Handler) token(field string, b []byte) (task.Token, error) {
	var f wire.Fields
	t := f.Token(field, b)
	if err := f.Err(); err != nil {
		return t, err
	}
	return t, h.ours(field, t.Store)
}

// ours refuses grants of another store than this node's.
func (h *Handler) ours(field string, store task.StoreID) error {
	if store == h.cfg.Engine.StoreID() {
		return nil
	}
	var f wire.Fields
	f.Addf(field, "was given out by another store than this node's")
	return f.Err()
}

// readRefs reads grants in columns and refuses those of another store.
func (h *Handler) readRefs(field string, m *matchingpb.GrantRefs) (wire.Refs, error) {
	refs, err := h.decoder().Refs(field, m)
	if err != nil {
		return refs, err
	}
	return refs, h.ours(field+".store_id", refs.Store)
}

// refs starts batch i of a request, grants in columns.
func (h *Handler) refs(ctx context.Context, batches []*matchingpb.GrantRefs, i int, do verb) *settling {
	refs, err := h.readRefs("batches["+strconv.Itoa(i)+"]", batches[i])
	if err != nil {
		return &settling{whole: err}
	}
	q, err := h.batchQueue(ctx, refs.Partition, engine.Settle, len(batches) == 1)
	if err != nil {
		return &settling{whole: err}
	}
	grants := grantsOf(refs)
	return &settling{results: make([]queue.Result, len(grants)), calls: []startedCall{{call: do(q, grants)}}}
}

func grantsOf(refs wire.Refs) []task.Grant {
	grants := make([]task.Grant, refs.Len())
	for i := range grants {
		grants[i] = refs.Grant(i)
	}
	return grants
}

// tokens starts a batch of grants given by tokens, of any number of partitions.
func (h *Handler) tokens(ctx context.Context, tokens [][]byte, do verb) *settling {
	if limit := h.settings().Limits.BatchItems; len(tokens) > limit {
		return &settling{whole: task.Errorf(task.Invalid, "tokens has %d grants, the limit is %d (%s)", len(tokens), limit, wire.SettingBatchItems)}
	}
	s := &settling{results: make([]queue.Result, len(tokens))}
	items := map[partition.ID][]int{}
	grants := map[partition.ID][]task.Grant{}
	for i, b := range tokens {
		t, err := h.token("tokens["+strconv.Itoa(i)+"]", b)
		if err != nil {
			s.results[i].Err = err
			continue
		}
		items[t.Partition] = append(items[t.Partition], i)
		grants[t.Partition] = append(grants[t.Partition], t.Grant)
	}
	for p, is := range items {
		q, err := h.batchQueue(ctx, p, engine.Settle, len(items) == 1)
		if err != nil {
			for _, i := range is {
				s.results[i].Err = err
			}
			continue
		}
		s.calls = append(s.calls, startedCall{call: do(q, grants[p]), items: is})
	}
	return s
}

// settleAll starts the batches of a request and its tokens, then waits for all.
func (h *Handler) settleAll(ctx context.Context, batches []*matchingpb.GrantRefs, tokens [][]byte, do verb) (byBatch []*settling, byToken *settling) {
	for i := range batches {
		byBatch = append(byBatch, h.refs(ctx, batches, i, do))
	}
	if len(tokens) > 0 {
		byToken = h.tokens(ctx, tokens, do)
	}
	for _, s := range byBatch {
		s.wait(ctx)
	}
	if byToken != nil {
		byToken.wait(ctx)
	}
	return byBatch, byToken
}

func complete(q *queue.Queue, grants []task.Grant) *queue.Call  { return q.Complete(grants) }
func release(q *queue.Queue, grants []task.Grant) *queue.Call   { return q.Release(grants) }
func heartbeat(q *queue.Queue, grants []task.Grant) *queue.Call { return q.Heartbeat(grants) }

func fail(f ledger.Failure) verb {
	return func(q *queue.Queue, grants []task.Grant) *queue.Call { return q.Fail(grants, f) }
}

// failureOf is what the ledger is told of a failure.
func failureOf(f wire.Failure) ledger.Failure {
	return ledger.Failure{Message: f.Message, NonRetryable: f.NonRetryable, RetryAfter: f.RetryAfter}
}
