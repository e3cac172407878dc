package tasks

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/matching/matchingpb"
)

// shownTask is a task as JSON. The payload stands under "payload" when it is
// UTF-8, else under "payload_base64".
type shownTask struct {
	ID          output.ID         `json:"id"`
	Partition   int32             `json:"partition"`
	State       string            `json:"state"`
	Priority    int32             `json:"priority"`
	AddedAt     string            `json:"added_at"`
	DueAt       string            `json:"due_at,omitempty"`
	ExpiresAt   string            `json:"expires_at,omitempty"`
	Attempts    uint32            `json:"attempts"`
	Deliveries  uint32            `json:"deliveries"`
	MaxAttempts int32             `json:"max_attempts,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Lease       *shownLease       `json:"lease,omitempty"`
	LastFailure string            `json:"last_failure,omitempty"`
	DeadAt      string            `json:"dead_at,omitempty"`
	DeadReason  string            `json:"dead_reason,omitempty"`
	PayloadSize int64             `json:"payload_size"`
	Payload     *string           `json:"payload,omitempty"`
	Bytes       []byte            `json:"payload_base64,omitempty"`
}

// shownLease is who works on a task, as JSON.
type shownLease struct {
	Identity  string  `json:"identity"`
	Delivery  uint32  `json:"delivery"`
	Epoch     uint64  `json:"epoch"`
	Remaining float64 `json:"remaining_s"`
}

func shownTaskOf(t *matchingpb.TaskDescription) shownTask {
	s := shownTask{
		ID:          output.ID(t.GetId()),
		Partition:   t.GetPartition().GetPartition(),
		State:       stateName(t.GetState()),
		Priority:    t.GetOptions().GetPriority(),
		AddedAt:     output.Time(t.GetAddedAt()),
		DueAt:       output.Time(t.GetDueAt()),
		ExpiresAt:   output.Time(t.GetExpiresAt()),
		Attempts:    t.GetAttempts(),
		Deliveries:  t.GetDeliveries(),
		MaxAttempts: t.GetOptions().GetMaxAttempts(),
		Headers:     t.GetOptions().GetHeaders(),
		LastFailure: t.GetLastFailure(),
		DeadAt:      output.Time(t.GetDeadAt()),
		DeadReason:  t.GetDeadReason(),
		PayloadSize: t.GetPayloadSize(),
	}
	if utf8.Valid(t.GetPayload()) {
		text := string(t.GetPayload())
		s.Payload = &text
	} else {
		s.Bytes = t.GetPayload()
	}
	if l := t.GetLease(); l != nil {
		s.Lease = &shownLease{l.GetIdentity(), l.GetDelivery(), l.GetEpoch(), l.GetRemaining().AsDuration().Seconds()}
	}
	return s
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
