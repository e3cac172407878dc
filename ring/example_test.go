package ring_test

import (
	"fmt"

	"github.com/taskring/taskring/ring"
)

// A ring of three nodes and only seven slots, printed whole: the worked example of
// the package's doc.
func Example() {
	r, err := ring.New(ring.Format{Slots: 7, Replication: 3, Load: 1.2, MaxPoints: 8}, ring.Named("a", "b", "c"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for slot := range 7 {
		fmt.Print("slot ", slot)
		for _, n := range r.LookupN(nil, ring.Key(slot), 3) {
			fmt.Print("  ", n.Name)
		}
		fmt.Println()
	}
	fmt.Println("owned:", r.Owned())
	// Output:
	// slot 0  a  b  c
	// slot 1  c  b  a
	// slot 2  a  b  c
	// slot 3  c  b  a
	// slot 4  a  b  c
	// slot 5  c  a  b
	// slot 6  b  c  a
	// owned: [3 1 3]
}

// A Builder follows the members. Readers take the ring that it returns.
func ExampleBuilder() {
	b, err := ring.NewBuilder(ring.DefaultFormat())
	if err != nil {
		fmt.Println(err)
		return
	}
	nodes := []ring.Node{
		{Name: "a", Weight: 1, Address: "10.0.0.1:7233"},
		{Name: "b", Weight: 1, Address: "10.0.0.2:7233"},
		{Name: "c", Weight: 0, Address: "10.0.0.3:7233"}, // draining
	}
	r, err := b.Build(nodes)
	fmt.Println(r.Len(), err)

	_, err = b.Build(ring.Named("a#1"))
	fmt.Println(err)
	fmt.Println("still in use:", b.Current() == r)
	// Output:
	// 2 <nil>
	// the name of node "a#1" holds "#", which sets apart the points of a node with a weight
	// still in use: true
}
