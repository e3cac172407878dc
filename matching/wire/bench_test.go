package wire

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// The benchmarks of batches report the cost of one batch of 128 tasks.
const batch = 128

func benchGranted() []Granted {
	granted := make([]Granted, batch)
	for i := range granted {
		id := task.MakeID(1, uint64(i+1))
		granted[i] = Granted{
			Partition: orders.Partition(1), Grant: task.Grant{ID: id, Delivery: 1, Epoch: 1}, Attempt: 1, Lease: 30 * time.Second,
			Task: &task.Task{ID: id, Payload: make([]byte, 256), Priority: task.DefaultPriority, AddedAt: now},
		}
	}
	return granted
}

func BenchmarkEncodeColumns(b *testing.B) {
	granted := benchGranted()
	b.ReportAllocs()
	for b.Loop() {
		EncodeColumns(granted)
	}
}

func BenchmarkDecodeColumns(b *testing.B) {
	m := EncodeColumns(benchGranted())[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeColumns(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAddBatch(b *testing.B) {
	m := &matchingpb.AddBatch{TaskQueue: EncodePartition(orders.Partition(1)), Payloads: make([][]byte, batch)}
	for i := range m.GetPayloads() {
		m.Payloads[i] = make([]byte, 256)
	}
	d := decoder()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.AddBatch(m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefs(b *testing.B) {
	granted := benchGranted()
	r := RefsFor(granted[0].Token())
	for _, g := range granted {
		r.Add(g.Token())
	}
	m, d := r.Encode(), decoder()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.Refs("batches[0]", m); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCountsAppend(b *testing.B) {
	c := PartitionCounts{partition.Counts{Read: 4, Write: 4, BacklogCap: 1000, BacklogCodes: "abcd"}}
	buffer := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		buffer = c.Append(buffer[:0])
	}
}

func BenchmarkCountsParse(b *testing.B) {
	bytes := PartitionCounts{partition.Counts{Read: 4, Write: 4, BacklogCap: 1000, BacklogCodes: "abcd"}}.Append(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParsePartitionCounts(bytes); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStatus(b *testing.B) {
	err := task.Errorf(task.NotReady, "loading")
	b.ReportAllocs()
	for b.Loop() {
		if FromStatus(ToStatus(err)) == nil || Code(task.NotReady) != codes.Unavailable {
			b.Fatal("no error")
		}
	}
}
