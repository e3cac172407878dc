package client

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/taskring/taskring/matching/matchingpb"
)

// TestSumsKeepTheEarliestTimes: of several partitions the queue's is the one with
// the oldest ready task and the one with the task that is due first.
func TestSumsKeepTheEarliestTimes(t *testing.T) {
	at := func(s int64) *timestamppb.Timestamp { return timestamppb.New(time.Unix(s, 0)) }
	sum := &matchingpb.QueueStats{}
	for _, s := range []*matchingpb.QueueStats{
		{Ready: 1, OldestReadyAt: at(20)},
		{Scheduled: 2, NextDueAt: at(90)},
		{Ready: 1, OldestReadyAt: at(10), Scheduled: 1, NextDueAt: at(70)},
		{Scheduled: 4, NextDueAt: at(80)},
	} {
		addStats(sum, s)
	}
	if sum.GetReady() != 2 || sum.GetScheduled() != 7 || sum.GetOldestReadyAt().GetSeconds() != 10 || sum.GetNextDueAt().GetSeconds() != 70 {
		t.Errorf("the sum is %v", sum)
	}
}
