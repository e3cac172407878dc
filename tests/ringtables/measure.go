package main

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
	"github.com/taskring/taskring/ring/route"
)

// orders is the queue whose partitions are looked up; its name is as long as names
// are.
var orders = partition.Queue{Namespace: "default", Name: "order-processing", Type: partition.Activity}

// best returns the time of one operation in nanoseconds: the least of many rounds of
// n operations.
func best(rounds, n int, op func(i int)) float64 {
	least := time.Duration(1 << 62)
	for range rounds {
		start := time.Now()
		for i := range n {
			op(i)
		}
		least = min(least, time.Since(start))
	}
	return float64(least.Nanoseconds()) / float64(n)
}

// lookups writes how long it takes to find a node, in nanoseconds.
func lookups(sizes []int) (string, error) {
	const rounds, each = 200, 5000
	keys := make([]string, 1024)
	for i := range keys {
		keys[i] = string(orders.Partition(int32(i)).AppendRoutingKey(nil))
	}
	var b strings.Builder
	b.WriteString("| nodes | Lookup | At(key, 7) | route, batch 0 | batch 4 | batch 8 | GetClosestN(key, 8) | its allocations |\n")
	b.WriteString("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, n := range sizes {
		r, err := ring.New(ring.DefaultFormat(), nodes(n))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "| %d", n)
		for _, op := range []func(i int){
			func(i int) { find(r.Lookup(ring.KeyOf(keys[i&1023]))) },
			func(i int) { find(r.At(ring.KeyOf(keys[i&1023]), 7)) },
			func(i int) { find(route.Owner(r, orders.Partition(int32(i&127)), 0)) },
			func(i int) { find(route.Owner(r, orders.Partition(int32(i&127)), 4)) },
			func(i int) { find(route.Owner(r, orders.Partition(int32(i&127)), 8)) },
		} {
			if allocations := testing.AllocsPerRun(100, func() { op(25) }); allocations != 0 {
				return "", fmt.Errorf("a lookup on %d nodes allocates %v times", n, allocations)
			}
			fmt.Fprintf(&b, " | %.0f", best(rounds, each, op))
		}
		closest := library(nodes(n))
		op := func(i int) {
			list, err := closest.GetClosestN([]byte(keys[i&1023]), min(8, n))
			runtime.KeepAlive(list)
			runtime.KeepAlive(err)
		}
		fmt.Fprintf(&b, " | %.0f | %.0f |\n", best(50, 50, op), testing.AllocsPerRun(20, func() { op(25) }))
	}
	return b.String(), nil
}

// find takes what was found, so that the lookup is not left out.
func find(n ring.Node, ok bool) {
	runtime.KeepAlive(n.Weight)
	runtime.KeepAlive(ok)
}

// builds writes how long it takes to build a ring, in milliseconds, and how large its
// lists are.
func builds(sizes []int) (string, error) {
	f := ring.DefaultFormat()
	var b strings.Builder
	b.WriteString("| nodes | the whole ring | of it the library | lists, KiB |\n| ---: | ---: | ---: | ---: |\n")
	for _, n := range sizes {
		members := nodes(n)
		var err error
		whole := best(7, 1, func(int) { _, err = ring.New(f, members) })
		if err != nil {
			return "", err
		}
		part := best(7, 1, func(int) { runtime.KeepAlive(library(members)) })
		kib := float64(f.Slots*min(n, ring.Positions)*2) / 1024
		fmt.Fprintf(&b, "| %d | %.1f | %.1f | %.0f |\n", n, whole/1e6, part/1e6, kib)
	}
	return b.String(), nil
}
