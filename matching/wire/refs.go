package wire

import (
	"bytes"
	"strconv"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Refs names grants of one partition and epoch, as columns.
type Refs struct {
	Store     task.StoreID
	Partition partition.ID
	Epoch     task.Epoch
	IDs       []task.ID
	// Deliveries has one entry per id.
	Deliveries []uint32
}

// RefsFor returns empty refs that take grants like the token's.
func RefsFor(t task.Token) Refs {
	return Refs{Store: t.Store, Partition: t.Partition, Epoch: t.Grant.Epoch}
}

// Takes reports whether the token's grant may be added: its store, partition
// and epoch are those of r.
func (r *Refs) Takes(t task.Token) bool {
	return r.Partition == t.Partition && r.Epoch == t.Grant.Epoch && r.Store == t.Store
}

// Add appends the token's grant, which r must take.
func (r *Refs) Add(t task.Token) {
	r.IDs = append(r.IDs, t.Grant.ID)
	r.Deliveries = append(r.Deliveries, t.Grant.Delivery)
}

// Len returns the number of grants.
func (r *Refs) Len() int { return len(r.IDs) }

// Grant returns grant i.
func (r *Refs) Grant(i int) task.Grant {
	return task.Grant{ID: r.IDs[i], Delivery: r.Deliveries[i], Epoch: r.Epoch}
}

// Encode returns the message for r. It shares r's deliveries.
func (r *Refs) Encode() *matchingpb.GrantRefs {
	ids := make([]uint64, len(r.IDs))
	for i, id := range r.IDs {
		ids[i] = uint64(id)
	}
	return &matchingpb.GrantRefs{
		StoreId:    bytes.Clone(r.Store[:]),
		Partition:  EncodePartition(r.Partition),
		Epoch:      uint64(r.Epoch),
		Ids:        ids,
		Deliveries: r.Deliveries,
	}
}

// Refs reads grants, with field as their path in the request. One that names
// nothing refuses all: no client of ours sends it.
func (d Decoder) Refs(field string, m *matchingpb.GrantRefs) (Refs, error) {
	var f Fields
	n := len(m.GetIds())
	r := Refs{
		Store:      f.store(field+".store_id", m.GetStoreId()),
		Partition:  f.Partition(field+".partition", m.GetPartition()),
		Epoch:      task.Epoch(m.GetEpoch()),
		IDs:        make([]task.ID, n),
		Deliveries: m.GetDeliveries(),
	}
	if r.Epoch == 0 || r.Epoch > task.MaxEpoch {
		f.Addf(field+".epoch", "is %d, epochs run from 1 to %d", r.Epoch, task.MaxEpoch)
	}
	if n > d.Limits.BatchItems {
		f.Addf(field+".ids", "has %d grants, the limit is %d (%s)", n, d.Limits.BatchItems, SettingBatchItems)
	}
	f.sameLength(field+".deliveries", len(r.Deliveries), n)
	if !f.OK() {
		return Refs{}, f.Err()
	}
	for i, id := range m.GetIds() {
		r.IDs[i] = task.ID(id)
		if id == 0 || r.Deliveries[i] == 0 {
			f.Addf(field+".ids["+strconv.Itoa(i)+"]", "is %d with delivery %d, both count from 1", id, r.Deliveries[i])
			break
		}
	}
	return r, f.Err()
}

// Token reads a token of a request, with field as its path.
func (f *Fields) Token(field string, b []byte) task.Token {
	t, err := task.ParseToken(b)
	if err != nil {
		f.Addf(field, "is no token of this service: %v", err)
	}
	return t
}

// ParseToken reads the token of a request that has nothing else to check.
func ParseToken(b []byte) (task.Token, error) {
	var f Fields
	t := f.Token("token", b)
	return t, f.Err()
}
