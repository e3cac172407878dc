package partition

import "strconv"

// AppendSpreadKey appends to b what is hashed on the ring to place p when the
// partitions of its queue are spread: batches of batchSize partitions share a key,
// "namespace:queue:batch:task_type", and partition index of a batch goes to node
// index of the key's list. Batch 0 is left out of the key, so the root has the same
// key, and index, as without spreading. A batchSize below 1 means no spreading:
// the routing key, and index 0.
//
// With queue "orders" of namespace "ns", type activity (2):
//
//	partition  batch size 0              batch size 4    batch size 8
//	0          ns:orders:2            0  ns:orders:2  0  ns:orders:2  0
//	1          ns:/_sys/orders/1:2    0  ns:orders:2  1  ns:orders:2  1
//	7          ns:/_sys/orders/7:2    0  ns:orders:1:2 3 ns:orders:2  7
//	8          ns:/_sys/orders/8:2    0  ns:orders:2:2 0 ns:orders:1:2 0
//	25         ns:/_sys/orders/25:2   0  ns:orders:6:2 1 ns:orders:3:2 1
//
// Keys are hashed and never read back, so it does no harm that names may hold
// colons and two queues may have one key: they are placed alike. It allocates
// only when b has no room.
func (p ID) AppendSpreadKey(b []byte, batchSize int32) (key []byte, index int32) {
	if batchSize < 1 {
		return p.AppendRoutingKey(b), 0
	}
	batch := p.Number / batchSize
	b = append(b, p.Namespace...)
	b = append(b, ':')
	b = append(b, p.Name...)
	if batch > 0 {
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(batch), 10)
	}
	b = append(b, ':')
	return p.Type.append(b), p.Number - batch*batchSize
}

// AppendGradualKey appends to b what decides when p follows a gradual change:
// "namespace:queue:number:task_type", the number also for the root. It does not
// depend on how p is routed, so the instant is the same whatever the change is
// from and to, and each partition of a batch has its own.
func (p ID) AppendGradualKey(b []byte) []byte {
	b = append(b, p.Namespace...)
	b = append(b, ':')
	b = append(b, p.Name...)
	b = append(b, ':')
	b = strconv.AppendInt(b, int64(p.Number), 10)
	b = append(b, ':')
	return p.Type.append(b)
}

// GradualKey is [ID.AppendGradualKey] as a string.
func (p ID) GradualKey() string { return string(p.AppendGradualKey(nil)) }
