package task

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/taskring/taskring/partition"
)

// StoreID names a store, at random, when it is created. Tokens carry it so that
// a grant of one store is never honoured by another.
type StoreID [16]byte

// Token is what a worker shows to settle or extend a grant. It is opaque to
// the worker and tells any frontend where to route the call.
type Token struct {
	Store     StoreID
	Partition partition.ID
	Grant     Grant
}

// TokenVersion is the version byte that [Token.Append] writes.
const TokenVersion = 1

// ErrBadToken is returned by [ParseToken] for bytes that are no token.
var ErrBadToken = errors.New("not a task token")

// Append appends the token's bytes to b:
//
//	version   1 byte
//	store     16 bytes
//	type      1 byte
//	number    uvarint     partition number
//	namespace uvarint length, bytes
//	name      uvarint length, bytes
//	epoch     uvarint     of the grant
//	delivery  uvarint
//	id        8 bytes, big endian
//	crc       4 bytes, big endian, CRC32C of all before it
//
// The checksum finds damage, not forgery; the version byte leaves room for a
// token that is signed.
func (t Token) Append(b []byte) []byte {
	start := len(b)
	b = append(b, TokenVersion)
	b = append(b, t.Store[:]...)
	b = append(b, byte(t.Partition.Type))
	b = binary.AppendUvarint(b, uint64(uint32(t.Partition.Number)))
	b = binary.AppendUvarint(b, uint64(len(t.Partition.Namespace)))
	b = append(b, t.Partition.Namespace...)
	b = binary.AppendUvarint(b, uint64(len(t.Partition.Name)))
	b = append(b, t.Partition.Name...)
	b = binary.AppendUvarint(b, uint64(t.Grant.Epoch))
	b = binary.AppendUvarint(b, uint64(t.Grant.Delivery))
	b = binary.BigEndian.AppendUint64(b, uint64(t.Grant.ID))
	return binary.BigEndian.AppendUint32(b, checksum(b[start:]))
}

// ParseToken reads what [Token.Append] wrote. Errors match [ErrBadToken] and
// say what is wrong; the result is a valid partition and a grant with an id.
func ParseToken(b []byte) (Token, error) {
	const fixed = 1 + 16 + 1 // version, store, type
	if len(b) < fixed+8+4 {
		return Token{}, fmt.Errorf("%w: %d bytes are too few", ErrBadToken, len(b))
	}
	if b[0] != TokenVersion {
		return Token{}, fmt.Errorf("%w: version %d, this node reads version %d", ErrBadToken, b[0], TokenVersion)
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	if checksum(body) != sum {
		return Token{}, fmt.Errorf("%w: checksum mismatch", ErrBadToken)
	}
	var t Token
	copy(t.Store[:], body[1:])
	t.Partition.Type = partition.TaskType(body[17])
	r := reader{rest: body[fixed:]}
	t.Partition.Number = int32(r.uvarint(1<<31 - 1))
	t.Partition.Namespace = r.text()
	t.Partition.Name = r.text()
	t.Grant.Epoch = Epoch(r.uvarint(uint64(MaxEpoch)))
	t.Grant.Delivery = uint32(r.uvarint(1<<32 - 1))
	if r.bad || len(r.rest) != 8 {
		return Token{}, fmt.Errorf("%w: malformed fields", ErrBadToken)
	}
	t.Grant.ID = ID(binary.BigEndian.Uint64(r.rest))
	if t.Grant.ID == 0 || t.Grant.Delivery == 0 {
		return Token{}, fmt.Errorf("%w: names no grant", ErrBadToken)
	}
	if err := t.Partition.Validate(); err != nil {
		return Token{}, fmt.Errorf("%w: %w", ErrBadToken, err)
	}
	return t, nil
}

// checksum is CRC32C. The table is made once, in hash/crc32.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// reader takes fields off the front of rest and remembers the first failure.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > limit {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *reader) text() string {
	n := r.uvarint(partition.MaxNameLength)
	if r.bad || n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return ""
	}
	s := string(r.rest[:n])
	r.rest = r.rest[n:]
	return s
}
