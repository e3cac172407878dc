package wire

import (
	"bytes"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Granted is a task on its way to a worker.
type Granted struct {
	Store     task.StoreID
	Partition partition.ID // that granted it
	Grant     task.Grant
	Attempt   uint32 // from 1
	Lease     time.Duration
	// Task is read only. At a worker it holds what the wire carries: id,
	// payload, headers, priority, fairness key, times, durability.
	Task *task.Task
}

// Token returns what settles the grant.
func (g Granted) Token() task.Token {
	return task.Token{Store: g.Store, Partition: g.Partition, Grant: g.Grant}
}

// EncodeTokens returns grants as plain messages, each with its token.
func EncodeTokens(granted []Granted) []*matchingpb.TaskGrant {
	out := make([]*matchingpb.TaskGrant, len(granted))
	for i, g := range granted {
		out[i] = &matchingpb.TaskGrant{
			Token:         g.Token().Append(nil),
			Id:            uint64(g.Grant.ID),
			Payload:       g.Task.Payload,
			Headers:       g.Task.Headers,
			Priority:      int32(g.Task.Priority),
			Delivery:      g.Grant.Delivery,
			Attempt:       g.Attempt,
			AddedAt:       EncodeTime(g.Task.AddedAt),
			LeaseDuration: encodeDuration(g.Lease),
			Partition:     EncodePartition(g.Partition),
			Epoch:         uint64(g.Grant.Epoch),
			FairnessKey:   g.Task.FairnessKey,
			ExpiresAt:     EncodeTime(g.Task.ExpiresAt),
			Durability:    encodeDurability(g.Task.Durability),
		}
	}
	return out
}

// DecodeToken reads one message of [EncodeTokens]. What the token says goes
// before the fields beside it.
func DecodeToken(m *matchingpb.TaskGrant) (Granted, error) {
	token, err := task.ParseToken(m.GetToken())
	if err != nil {
		return Granted{}, task.Errorf(task.Internal, "a grant came with a bad token: %w", err)
	}
	g := Granted{Store: token.Store, Partition: token.Partition, Grant: token.Grant, Attempt: max(m.GetAttempt(), 1), Lease: m.GetLeaseDuration().AsDuration()}
	g.Task = &task.Task{
		ID:          token.Grant.ID,
		Payload:     m.GetPayload(),
		Headers:     m.GetHeaders(),
		Priority:    decodePriority(m.GetPriority()),
		FairnessKey: m.GetFairnessKey(),
		AddedAt:     DecodeTime(m.GetAddedAt()),
		ExpiresAt:   DecodeTime(m.GetExpiresAt()),
		Durability:  decodeDurability(m.GetDurability()),
		Attempts:    g.Attempt - 1,
		Deliveries:  token.Grant.Delivery,
	}
	return g, nil
}

// EncodeColumns returns grants as columns, one batch for each partition and
// epoch among them; within a batch the order stays.
func EncodeColumns(granted []Granted) []*matchingpb.GrantBatch {
	out := columns{expect: len(granted)}
	for i := range granted {
		out.add(&granted[i])
	}
	return out.batches
}

// columns builds batches. A poll's tasks come from very few partitions, so the
// batch of a grant is found by looking at all.
type columns struct {
	batches []*matchingpb.GrantBatch
	states  []columnState
	expect  int // grants to come; sizes the first batch, which mostly takes all
}

// columnState is what a batch is filled by.
type columnState struct {
	store     task.StoreID
	partition partition.ID
	epoch     task.Epoch
	lease     time.Duration
	lastAdded task.Micros
}

func (c *columns) add(g *Granted) {
	i := c.find(g)
	b, s := c.batches[i], &c.states[i]
	b.Payloads = append(b.Payloads, g.Task.Payload)
	b.Ids = append(b.Ids, uint64(g.Grant.ID))
	b.Deliveries = append(b.Deliveries, g.Grant.Delivery)
	b.AddedUs = append(b.AddedUs, int64(g.Task.AddedAt-s.lastAdded))
	s.lastAdded = g.Task.AddedAt
	if detail := detailOf(g, s.lease); detail != nil {
		detail.Index = uint32(len(b.GetIds()) - 1)
		b.Details = append(b.Details, detail)
	}
}

// find returns the index of the batch that g belongs to, begun when missing.
func (c *columns) find(g *Granted) int {
	for i := range c.states {
		if s := &c.states[i]; s.partition == g.Partition && s.epoch == g.Grant.Epoch && s.store == g.Store {
			return i
		}
	}
	c.states = append(c.states, columnState{store: g.Store, partition: g.Partition, epoch: g.Grant.Epoch, lease: g.Lease})
	c.batches = append(c.batches, &matchingpb.GrantBatch{
		Partition:     EncodePartition(g.Partition),
		Epoch:         uint64(g.Grant.Epoch),
		StoreId:       bytes.Clone(g.Store[:]),
		LeaseDuration: encodeDuration(g.Lease),
		Payloads:      make([][]byte, 0, c.expect),
		Ids:           make([]uint64, 0, c.expect),
		Deliveries:    make([]uint32, 0, c.expect),
		AddedUs:       make([]int64, 0, c.expect),
	})
	c.expect = 0
	return len(c.batches) - 1
}

// detailOf returns what deviates from the defaults, or nil.
func detailOf(g *Granted, lease time.Duration) *matchingpb.GrantDetail {
	t := g.Task
	plain := len(t.Headers) == 0 && t.Priority == task.DefaultPriority && g.Attempt == 1 && g.Lease == lease &&
		t.FairnessKey == "" && t.ExpiresAt == 0 && t.Durability == task.Durable
	if plain {
		return nil
	}
	d := &matchingpb.GrantDetail{Headers: t.Headers, FairnessKey: t.FairnessKey, ExpiresAt: EncodeTime(t.ExpiresAt)}
	if t.Priority != task.DefaultPriority {
		d.Priority = int32(t.Priority)
	}
	if g.Attempt != 1 {
		d.Attempt = g.Attempt
	}
	if g.Lease != lease {
		d.LeaseDuration = durationpb.New(g.Lease)
	}
	if t.Durability != task.Durable {
		d.Durability = encodeDurability(t.Durability)
	}
	return d
}

// DecodeColumns reads one batch of [EncodeColumns]. A batch that contradicts
// itself is refused whole: its grants run out at the node and come again.
func DecodeColumns(b *matchingpb.GrantBatch) ([]Granted, error) {
	var f Fields
	n := len(b.GetIds())
	id := f.Partition("partition", b.GetPartition())
	store := f.store("store_id", b.GetStoreId())
	f.sameLength("payloads", len(b.GetPayloads()), n)
	f.sameLength("deliveries", len(b.GetDeliveries()), n)
	f.sameLength("added_us", len(b.GetAddedUs()), n)
	checkIndexes(&f, "details", b.GetDetails(), n)
	if err := f.Err(); err != nil {
		return nil, task.Errorf(task.Internal, "a batch of grants contradicts itself: %w", err)
	}
	out := make([]Granted, n)
	details, added := b.GetDetails(), task.Micros(0)
	lease := b.GetLeaseDuration().AsDuration()
	for i := range out {
		added += task.Micros(b.GetAddedUs()[i])
		grant := task.Grant{ID: task.ID(b.GetIds()[i]), Delivery: b.GetDeliveries()[i], Epoch: task.Epoch(b.GetEpoch())}
		out[i] = Granted{Store: store, Partition: id, Grant: grant, Attempt: 1, Lease: lease}
		out[i].Task = &task.Task{ID: grant.ID, Payload: b.GetPayloads()[i], Priority: task.DefaultPriority, AddedAt: added, Deliveries: grant.Delivery}
		if len(details) > 0 && details[0].GetIndex() == uint32(i) {
			out[i] = detailed(out[i], details[0])
			details = details[1:]
		}
	}
	return out, nil
}

// detailed returns the grant with what deviates set, in its task too.
func detailed(g Granted, d *matchingpb.GrantDetail) Granted {
	t := g.Task
	t.Headers, t.FairnessKey = d.GetHeaders(), d.GetFairnessKey()
	t.Priority = decodePriority(d.GetPriority())
	t.ExpiresAt = DecodeTime(d.GetExpiresAt())
	t.Durability = decodeDurability(d.GetDurability())
	g.Attempt = max(d.GetAttempt(), 1)
	t.Attempts = g.Attempt - 1
	if d.GetLeaseDuration() != nil {
		g.Lease = d.GetLeaseDuration().AsDuration()
	}
	return g
}

// sameLength refuses a column that is not as long as its ids.
func (f *Fields) sameLength(field string, got, want int) {
	if got != want {
		f.Addf(field, "has %d entries for %d ids, each id needs one", got, want)
	}
}

func (f *Fields) store(field string, b []byte) task.StoreID {
	var s task.StoreID
	if len(b) != len(s) {
		f.Addf(field, "is %d bytes long, a store id has %d", len(b), len(s))
		return s
	}
	copy(s[:], b)
	return s
}

// decodePriority reads a priority that a node sent; what no node sends becomes
// the default.
func decodePriority(p int32) task.Priority {
	if p < int32(task.MinPriority) || p > int32(task.MaxPriority) {
		return task.DefaultPriority
	}
	return task.Priority(p)
}

func decodeDurability(d matchingpb.Durability) task.Durability {
	if d == matchingpb.Durability_DURABILITY_HAND_OFF {
		return task.HandOff
	}
	return task.Durable
}
