package postgres

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// key stands for a partition's names in its rows. It is drawn at random when
// the partition is first taken: a counter would give a key again after an older
// backup was restored, and a node that remembers the key from before would
// write into another partition.
type key int64

func newKey() key {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: it ends the process instead
	return key(binary.BigEndian.Uint64(b[:]) >> 1)
}

// signed is how an id is stored. The server has no unsigned numbers; shifted by
// half their range, ids keep their order.
func signed(id task.ID) int64 { return int64(uint64(id) ^ 1<<63) }

// unsigned turns signed around.
func unsigned(n int64) task.ID { return task.ID(uint64(n) ^ 1<<63) }

// maxPlainName is the longest request id that is stored as it is; an index
// takes no more than 2,700 bytes, of longer ones the hash does.
const maxPlainName = 255

// requestName is how a request id is stored: 0 and the id, or 1 and its hash.
// The first byte keeps an id that looks like a hash apart from the hash.
func requestName(id string) []byte {
	if len(id) <= maxPlainName {
		return append([]byte{0}, id...)
	}
	sum := sha256.Sum256([]byte(id))
	return append([]byte{1}, sum[:]...)
}

// known is what a store remembers of a partition.
type known struct {
	key    key
	exists bool       // somebody took it once
	epoch  task.Epoch // that this store took, 0 for none
}

// keyring remembers the keys of partitions. A partition's key never changes.
type keyring struct {
	limit int

	mu struct {
		sync.Mutex
		byID map[partition.ID]known
	}
}

// maxKeys bounds a keyring; 100,000 keys with names of 50 bytes take 20 MB.
const maxKeys = 100_000

func newKeyring(limit int) *keyring {
	r := &keyring{limit: limit}
	r.mu.byID = make(map[partition.ID]known)
	return r
}

func (r *keyring) get(p partition.ID) known {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.byID[p]
}

// put remembers a key. When there are too many, any other one is forgotten: it
// is asked for again when it is needed.
func (r *keyring) put(p partition.ID, k known) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.mu.byID[p]; !ok {
		for other := range r.mu.byID {
			if len(r.mu.byID) < r.limit {
				break
			}
			delete(r.mu.byID, other)
		}
	}
	r.mu.byID[p] = k
}

func (r *keyring) forget(p partition.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.byID, p)
}
