package queues

import (
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/matching/matchingpb"
)

// shownStats are the figures of a queue or a partition, as JSON.
type shownStats struct {
	Ready         int64   `json:"ready"`
	Scheduled     int64   `json:"scheduled"`
	Leased        int64   `json:"leased"`
	Dead          int64   `json:"dead"`
	OldestReadyAt string  `json:"oldest_ready_at,omitempty"`
	NextDueAt     string  `json:"next_due_at,omitempty"`
	AddRate       float64 `json:"add_rate"`
	DispatchRate  float64 `json:"dispatch_rate"`
	WaitingPolls  int64   `json:"waiting_polls"`
	RateLimited   bool    `json:"rate_limited"`
	Estimated     bool    `json:"estimated"`
}

// shownQueue is a line of `queue list` as JSON.
type shownQueue struct {
	Namespace      string      `json:"namespace"`
	Name           string      `json:"name"`
	Type           string      `json:"type"`
	Partitions     int32       `json:"partitions"`
	Stats          *shownStats `json:"stats,omitempty"`
	DispatchPaused bool        `json:"dispatch_paused"`
	AddPaused      bool        `json:"add_paused"`
}

// shownDescription is what `queue describe` prints as JSON.
type shownDescription struct {
	Namespace       string           `json:"namespace"`
	Name            string           `json:"name"`
	Type            string           `json:"type"`
	ReadPartitions  int32            `json:"read_partitions"`
	WritePartitions int32            `json:"write_partitions"`
	Stats           *shownStats      `json:"stats"`
	Pollers         []shownPoller    `json:"pollers"`
	Partitions      []shownPartition `json:"partitions"`
	Missing         []shownMissing   `json:"missing"`
}

// shownMissing is a partition that did not answer, as JSON.
type shownMissing struct {
	Partition uint32 `json:"partition"`
	Reason    string `json:"reason"`
	Message   string `json:"message"`
}

// shownPoller is a worker seen lately, as JSON.
type shownPoller struct {
	Identity   string  `json:"identity"`
	LastSeenAt string  `json:"last_seen_at"`
	OpenPolls  int32   `json:"open_polls"`
	Partitions []int32 `json:"partitions,omitempty"`
}

// shownPartition is a partition as JSON. Epochs and ids are strings.
type shownPartition struct {
	Partition int32         `json:"partition"`
	Loaded    bool          `json:"loaded"`
	Node      string        `json:"node"`
	Address   string        `json:"address"`
	Epoch     uint64        `json:"epoch,string"`
	LoadedAt  string        `json:"loaded_at,omitempty"`
	Drained   bool          `json:"drained"`
	LastID    output.ID     `json:"last_id"`
	Stats     *shownStats   `json:"stats"`
	Pollers   []shownPoller `json:"pollers,omitempty"`
	Levels    []shownLevel  `json:"levels,omitempty"`
}

// shownLevel is how far a priority was read and settled, as JSON.
type shownLevel struct {
	Priority  int32     `json:"priority"`
	ReadLevel output.ID `json:"read_level"`
	AckLevel  output.ID `json:"ack_level"`
	Loaded    int64     `json:"loaded"`
}

func shownStatsOf(s *matchingpb.QueueStats) *shownStats {
	if s == nil {
		return nil
	}
	return &shownStats{
		Ready: s.GetReady(), Scheduled: s.GetScheduled(), Leased: s.GetLeased(), Dead: s.GetDead(),
		OldestReadyAt: output.Time(s.GetOldestReadyAt()), NextDueAt: output.Time(s.GetNextDueAt()),
		AddRate: s.GetAddRate(), DispatchRate: s.GetDispatchRate(),
		WaitingPolls: s.GetWaitingPolls(), RateLimited: s.GetRateLimited(), Estimated: s.GetEstimated(),
	}
}

func shownQueueOf(q *matchingpb.TaskQueueSummary) shownQueue {
	return shownQueue{
		Namespace: q.GetTaskQueue().GetNamespace(), Name: q.GetTaskQueue().GetName(), Type: typeName(q.GetTaskQueue().GetType()),
		Partitions: q.GetPartitions(), Stats: shownStatsOf(q.GetStats()),
		DispatchPaused: q.GetDispatchPaused(), AddPaused: q.GetAddPaused(),
	}
}

func shownDescriptionOf(d *matchingpb.DescribeTaskQueueResponse) shownDescription {
	s := shownDescription{
		Namespace: d.GetTaskQueue().GetNamespace(), Name: d.GetTaskQueue().GetName(), Type: typeName(d.GetTaskQueue().GetType()),
		ReadPartitions: d.GetCounts().GetRead(), WritePartitions: d.GetCounts().GetWrite(),
		Stats: shownStatsOf(d.GetStats()), Pollers: shownPollersOf(d.GetPollers()),
		Partitions: []shownPartition{}, Missing: []shownMissing{},
	}
	for _, p := range d.GetPartitions() {
		s.Partitions = append(s.Partitions, shownPartitionOf(p))
	}
	for _, m := range d.GetMissing() {
		s.Missing = append(s.Missing, shownMissing{m.GetIndex(), m.GetReason(), m.GetMessage()})
	}
	return s
}

func shownPollersOf(pollers []*matchingpb.Poller) []shownPoller {
	shown := make([]shownPoller, 0, len(pollers))
	for _, p := range pollers {
		shown = append(shown, shownPoller{p.GetIdentity(), output.Time(p.GetLastSeenAt()), p.GetOpenPolls(), p.GetPartitions()})
	}
	return shown
}

func shownPartitionOf(p *matchingpb.PartitionDescription) shownPartition {
	s := shownPartition{
		Partition: p.GetPartition(), Loaded: p.GetLoaded(), Node: p.GetHolder().GetNode(), Address: p.GetHolder().GetAddress(),
		Epoch: p.GetEpoch(), LoadedAt: output.Time(p.GetLoadedAt()), Drained: p.GetDrained(), LastID: output.ID(p.GetLastId()),
		Stats: shownStatsOf(p.GetStats()), Pollers: shownPollersOf(p.GetPollers()),
	}
	for _, l := range p.GetLevels() {
		s.Levels = append(s.Levels, shownLevel{l.GetPriority(), output.ID(l.GetReadLevel()), output.ID(l.GetAckLevel()), l.GetLoaded()})
	}
	return s
}
