package route_test

import (
	"fmt"

	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
	"github.com/taskring/taskring/ring/route"
)

// Partition 25 with batches of 8: batch 3, index 1, so position 1 of the list of the
// batch's key.
func ExampleExplain() {
	r, err := ring.New(ring.DefaultFormat(), ring.Named("node-1", "node-2", "node-3", "node-4", "node-5"))
	if err != nil {
		fmt.Println(err)
		return
	}
	orders := partition.Queue{Namespace: "ns", Name: "orders", Type: partition.Activity}
	e := route.Explain(r, orders.Partition(25), 8)
	fmt.Printf("batch %d, index %d, key %s, slot %d\n", e.Batch, e.Index, e.Key, e.Slot)
	for _, n := range e.List {
		fmt.Println(n.Name)
	}
	owner, _ := route.Owner(r, orders.Partition(25), 8)
	fmt.Println("owner:", owner.Address)
	// Output:
	// batch 3, index 1, key ns:orders:3:2, slot 4080
	// node-5
	// node-1
	// owner: node-1
}
