package server

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/matching/matchingpb"
)

// TestNextDueAt: a description says when the first scheduled task is due.
func TestNextDueAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		defer n.stop()
		n.add("q", "ready")
		if at := n.describe(false).GetStats().GetNextDueAt(); at != nil {
			t.Errorf("without a scheduled task the next is due at %v", at.AsTime())
		}
		began := time.Now()
		for _, hours := range []int{2, 1, 3} {
			n.addWith("later", &matchingpb.TaskOptions{Start: &matchingpb.TaskOptions_Delay{Delay: durationpb.New(time.Duration(hours) * time.Hour)}})
		}
		if at, want := n.describe(false).GetStats().GetNextDueAt().AsTime(), began.Add(time.Hour).UTC(); !at.Equal(want) {
			t.Errorf("the next is due at %v, want %v", at, want)
		}
	})
}
