package storetest

import (
	"time"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Holders of partitions in stories.
var (
	anna = task.Holder{Node: "anna", RunID: "run-1", Address: "10.0.0.1:7233"}
	bert = task.Holder{Node: "bert", RunID: "run-2", Address: "[::1]:7233"}
)

// at is a wall time that stories begin at.
const at = task.Micros(1_900_000_000_000_000)

// orders is the partition of stories that need only one.
var orders = partition.Queue{Namespace: "shop", Name: "orders", Type: partition.Activity}.Partition(0)

// trickyPartitions returns partitions in catalogue order whose names try a key
// format: zero bytes, 0xff, names that begin or continue each other, and that
// differ only where one name ends and the next begins.
func trickyPartitions() []partition.ID {
	queue := func(namespace, name string) partition.Queue {
		return partition.Queue{Namespace: namespace, Name: name, Type: partition.Activity}
	}
	return []partition.ID{
		queue("\x00", "q").Partition(0),
		queue("\x00\x00", "q").Partition(0),
		queue("\x00\x01", "q").Partition(0),
		queue("\x00\xff", "q").Partition(0),
		queue("\x01", "q").Partition(0),
		queue("a", "\x00").Partition(0),
		queue("a", "\x00\x01b").Partition(7),
		queue("a", "b").Partition(0),
		queue("a", "b").Partition(1),
		queue("a", "b").Partition(2),
		queue("a", "b").Partition(10),
		queue("a", "b").Partition(1<<31 - 1),
		partition.Queue{Namespace: "a", Name: "b", Type: partition.Dispatch}.Partition(0),
		queue("a", "b\x00").Partition(0),
		queue("a", "bb").Partition(0),
		queue("a", "c").Partition(0),
		queue("a", "\xff").Partition(0),
		queue("a\x00", "b").Partition(0),
		queue("aa", "a").Partition(0),
		queue("ab", "").Partition(0),
		queue("\xff", "\xff").Partition(0),
		queue("\xff\xff", "\xff").Partition(0),
	}
}

// aTask returns a task with every field set.
func aTask(id task.ID, p task.Priority) *task.Task {
	return &task.Task{
		ID:             id,
		Payload:        []byte("payload of " + id.String()),
		Headers:        map[string]string{"traceparent": "00-1-1-01", "": "no name"},
		Priority:       p,
		FairnessKey:    "tenant",
		FairnessWeight: 1.5,
		AddedAt:        at,
		NotBefore:      at + 1,
		ExpiresAt:      at + 2,
		MaxAttempts:    7,
		Retry:          task.RetryPolicy{Initial: time.Second, Max: time.Minute, Factor: 2, Jitter: 0.1},
		LeaseDuration:  30 * time.Second,
		Durability:     task.HandOff,
		RequestID:      "request " + id.String(),
	}
}

// aRow returns a task row.
func aRow(id task.ID, p task.Priority) row.Task { return row.Task{Task: aTask(id, p)} }

// aLease returns the lease of a task row.
func aLease(id task.ID, p task.Priority, delivery uint32) row.Lease {
	return row.Lease{
		ID: id, Priority: p, Delivery: delivery, Epoch: 1, Attempts: delivery - 1,
		Duration: time.Minute, Live: true, Identity: "worker " + id.String(),
	}
}

// failed returns the scheduled row of a task that failed.
func failed(t *task.Task, due task.Micros) row.Task {
	moved := *t
	moved.Attempts++
	moved.Deliveries++
	moved.LastFailure = "out of paper"
	return row.Task{Task: &moved, Due: due}
}

func died(t *task.Task) row.DeadTask {
	return row.DeadTask{Task: t, Reason: "no attempts left", At: at + 5}
}

// ids returns the ids first .. last of epoch 1.
func ids(first, last uint64) []task.ID {
	var list []task.ID
	for seq := first; seq <= last; seq++ {
		list = append(list, task.MakeID(1, seq))
	}
	return list
}

// rowsOf returns task rows for the ids first .. last of epoch 1.
func rowsOf(p task.Priority, first, last uint64) []row.Task {
	all := ids(first, last)
	list := make([]row.Task, 0, len(all))
	for _, id := range all {
		list = append(list, aRow(id, p))
	}
	return list
}
