package server

import (
	"fmt"
	"testing"

	"github.com/taskring/taskring/matching/matchingpb"
)

// BenchmarkFlow takes batches of tasks through add, poll and complete, without a
// socket and with a store in memory: what the server itself costs. Figures are
// per task.
func BenchmarkFlow(b *testing.B) {
	for _, size := range []int{1, 16, 256} {
		b.Run(fmt.Sprint("batch of ", size), func(b *testing.B) {
			n := start(b)
			defer n.stop()
			payloads := make([][]byte, size)
			for i := range payloads {
				payloads[i] = make([]byte, 256)
			}
			add := &matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{{TaskQueue: root("q"), Payloads: payloads}}}
			poll := &matchingpb.PollTaskRequest{TaskQueue: root("q"), MaxTasks: int32(size), Format: matchingpb.GrantFormat_GRANT_FORMAT_COLUMNS}
			b.ReportAllocs()
			b.ResetTimer()
			for done := 0; done < b.N; done += size {
				if got, err := n.handler.AddTasks(b.Context(), add); err != nil || got.GetResults()[0].GetError() != nil {
					b.Fatal(got, err)
				}
				got, err := n.handler.PollTask(b.Context(), poll)
				if err != nil || len(got.GetBatches()) != 1 {
					b.Fatal(got, err)
				}
				refs := refs(got.GetBatches()[0])
				refs.Ids, refs.Deliveries = got.GetBatches()[0].GetIds(), got.GetBatches()[0].GetDeliveries()
				if _, err := n.handler.CompleteTasks(b.Context(), &matchingpb.CompleteTasksRequest{Batches: []*matchingpb.GrantRefs{refs}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
