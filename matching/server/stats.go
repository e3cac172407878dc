package server

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// statsOf returns the figures of a partition that is loaded.
func statsOf(s *queue.Stats, r engine.Rates) *matchingpb.QueueStats {
	ready, scheduled := s.Estimate()
	out := &matchingpb.QueueStats{
		Ready:         ready,
		Scheduled:     scheduled,
		Leased:        s.Leased,
		Dead:          s.Dead,
		OldestReadyAt: wire.EncodeTime(s.OldestReady),
		NextDueAt:     wire.EncodeTime(s.NextDue),
		AddRate:       r.Adds,
		DispatchRate:  r.Grants,
		WaitingPolls:  int64(s.WaitingPolls),
		Estimated:     s.Spilled > 0 || s.DeadMore,
	}
	for i, of := range s.Priorities {
		if of.Ready == 0 && r.AddsBy[i] == 0 && r.GrantsBy[i] == 0 {
			continue
		}
		out.ByPriority = append(out.ByPriority, &matchingpb.PriorityStats{
			Priority: int32(i) + 1, Ready: of.Ready, OldestReadyAt: wire.EncodeTime(of.OldestReady),
			AddRate: r.AddsBy[i], DispatchRate: r.GrantsBy[i],
		})
	}
	return out
}

// loadedStats sums up the partitions of a queue that are loaded on this node.
func (h *Handler) loadedStats(q partition.Queue) *matchingpb.QueueStats {
	sum := &matchingpb.QueueStats{}
	for n := range h.cfg.Engine.Counts(q).Read {
		loaded, ok := h.cfg.Engine.Loaded(q.Partition(n))
		if !ok {
			sum.Estimated = true
			continue
		}
		s := loaded.Describe()
		addStats(sum, statsOf(&s, h.cfg.Engine.Rates(loaded, s)))
	}
	return sum
}

// addStats adds the figures of a partition to those of its queue, but for those by
// priority, which lists do not show.
func addStats(sum, s *matchingpb.QueueStats) {
	sum.Ready += s.GetReady()
	sum.Scheduled += s.GetScheduled()
	sum.Leased += s.GetLeased()
	sum.Dead += s.GetDead()
	sum.OldestReadyAt = earlier(sum.GetOldestReadyAt(), s.GetOldestReadyAt())
	sum.NextDueAt = earlier(sum.GetNextDueAt(), s.GetNextDueAt())
	sum.AddRate += s.GetAddRate()
	sum.DispatchRate += s.GetDispatchRate()
	sum.WaitingPolls += s.GetWaitingPolls()
	sum.Estimated = sum.GetEstimated() || s.GetEstimated()
}

// earlier returns the earlier of two times, either of which may be unset.
func earlier(a, b *timestamppb.Timestamp) *timestamppb.Timestamp {
	if a == nil || (b != nil && b.AsTime().Before(a.AsTime())) {
		return b
	}
	return a
}
