package client

import (
	"errors"

	"github.com/cespare/xxhash/v2"

	"github.com/taskring/taskring/partition"
)

// Ring tells which node owns a partition. It is called for every call, by many
// goroutines, and must neither block nor allocate much.
type Ring interface {
	// Route returns the gRPC address, HOST:PORT, of the owner of a partition.
	// An error means that no node is known.
	Route(id partition.ID) (address string, err error)
	// Nodes returns the addresses of all nodes, in no particular order. The
	// caller does not change the slice.
	Nodes() []string
}

// ErrNoNodes is returned by [StaticRing] when it is empty.
var ErrNoNodes = errors.New("no node is known: give the client the address of at least one")

// StaticRing is a Ring of nodes that never change, by address. Every process
// that lists the same addresses, in whatever order, places a partition on the
// same node: the one whose address, hashed together with the partition's
// routing key, gives the highest number. A node more or less moves only the
// partitions that it gains or loses.
type StaticRing []string

// Route implements [Ring].
func (r StaticRing) Route(id partition.ID) (string, error) {
	switch len(r) {
	case 0:
		return "", ErrNoNodes
	case 1:
		return r[0], nil
	}
	var buffer [128]byte
	key := xxhash.Sum64(id.AppendRoutingKey(buffer[:0]))
	best, highest := "", uint64(0)
	for _, address := range r {
		score := mixed(key ^ mixed(xxhash.Sum64String(address)))
		if best == "" || score > highest || (score == highest && address < best) {
			best, highest = address, score
		}
	}
	return best, nil
}

// Nodes implements [Ring].
func (r StaticRing) Nodes() []string { return r }

// mixed lets every bit of h change about half of the bits of the result; the
// hashes of two addresses alone differ by a constant for all keys.
func mixed(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53
	return h ^ h>>33
}
