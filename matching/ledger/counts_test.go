package ledger

import (
	"math/rand/v2"
	"testing"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/partition"
)

// TestSpilledIsNeverFalselyNone: metadata that was written before the backlog
// grew, as a crash leaves it, must not make a full partition look empty.
func TestSpilledIsNeverFalselyNone(t *testing.T) {
	l := New(Config{
		Partition: partition.Queue{Namespace: "ns", Name: "q", Type: partition.Activity}.Partition(0),
		Epoch:     7, Meta: row.Meta{MayHold: true, Backlog: 0}, Rand: rand.New(rand.NewPCG(1, 1)),
	}, start)
	for {
		r, wanted := l.NextRead()
		if !wanted {
			break
		}
		if l.Spilled() == 0 {
			t.Fatalf("nothing is left to the store, but it is still to be read: %+v", r)
		}
		l.Scanned(row.Page{}, start)
	}
	if l.Spilled() != 0 || !l.Drained() {
		t.Errorf("the store has nothing: %d tasks are left to it, drained: %v", l.Spilled(), l.Drained())
	}
}
