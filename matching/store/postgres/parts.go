package postgres

import (
	"fmt"
	"strings"

	"github.com/taskring/taskring/matching/row"
)

// The commit of many partitions is one statement. It begins with the fence and
// goes on with a part for each kind of change that it makes:
//
//	WITH fence AS (... FOR SHARE), ok AS (...), part AS (INSERT ...), part AS (DELETE ...) SELECT ... FROM fence
//
// The fence locks the rows of the partitions in the order of their keys and only
// then compares their epochs; a part does nothing for partitions that are not
// ok. There is one text for each set of kinds; few of the sets ever occur.
//
// All parts see the rows as they were when the statement began. That is enough,
// since no key stands in both a delete and a put of one kind.

// column is one column of values that a part takes.
type column uint8

const (
	colKey   column = iota // int8: of the partition, in every part
	colSmall               // int2: priority or flags
	colID                  // int8
	colAux                 // int8: due time, end of a range, backlog
	colBytes               // bytea: body, name or acks
)

// sqlType is the column's type on the server.
func (c column) sqlType() string {
	switch c {
	case colSmall:
		return "int2"
	case colBytes:
		return "bytea"
	default:
		return "int8"
	}
}

// part is one kind of change. In its text {w} is the values as a table.
type part struct {
	name    string
	columns []column
	names   string // of the columns in {w}
	text    string // {ok} is true of partitions whose epoch holds, {first} the keys once more
}

// deleteEach deletes the rows that are found one by one through the index. A
// join could be planned as a scan of the whole table, which after a vacuum of an
// empty queue it was. The rows stay where they are between the look-up and the
// delete, because a partition has one writer.
func deleteEach(table, match string) string {
	return `DELETE FROM {s}.` + table + ` WHERE ctid = ANY(ARRAY(SELECT x.c FROM {w} CROSS JOIN LATERAL ` +
		`(SELECT t.ctid AS c FROM {s}.` + table + ` t WHERE t.key = w.key AND ` + match + ` OFFSET 0) x WHERE {ok}))`
}

// upsertEach writes rows, over older ones where there are any.
func upsertEach(table, columns, keys, set string) string {
	return `INSERT INTO {s}.` + table + ` (` + columns + `) SELECT ` + columns + ` FROM {w} WHERE {ok} ON CONFLICT (` + keys + `) DO UPDATE SET ` + set
}

// Indexes of parts.
const (
	partDeleteRanges = iota
	partDeleteTasks
	partDeleteScheduled
	partDeleteLeases
	partDeleteDead
	partDeleteRequests
	partPutTasks
	partPutScheduled
	partPutLeases
	partPutDead
	partPutRequests
	partMeta
	partCount
)

// Flags of the metadata in colSmall.
const (
	flagReleased = 1 << iota
	flagMayHold
	flagListed
)

// allParts returns the parts by their index.
func allParts() [partCount]part {
	return [partCount]part{
		partDeleteRanges: {
			"delete_ranges", []column{colKey, colSmall, colID, colAux}, "key, pri, low, high",
			deleteEach("task", "t.pri = w.pri AND t.id BETWEEN w.low AND w.high"),
		},
		partDeleteTasks: {
			"delete_tasks", []column{colKey, colSmall, colID}, "key, pri, id",
			deleteEach("task", "t.pri = w.pri AND t.id = w.id"),
		},
		partDeleteScheduled: {
			"delete_scheduled", []column{colKey, colAux, colID}, "key, due, id",
			deleteEach("scheduled", "t.due = w.due AND t.id = w.id"),
		},
		partDeleteLeases: {
			"delete_leases", []column{colKey, colID}, "key, id",
			deleteEach("lease", "t.id = w.id"),
		},
		partDeleteDead: {
			"delete_dead", []column{colKey, colID}, "key, id",
			deleteEach("dead", "t.id = w.id"),
		},
		partDeleteRequests: {
			"delete_requests", []column{colKey, colBytes}, "key, name",
			deleteEach("request", "t.name = w.name"),
		},
		partPutTasks: { // written once, so there is no older row
			"put_tasks", []column{colKey, colSmall, colID, colBytes}, "key, pri, id, body",
			`INSERT INTO {s}.task (key, pri, id, body) SELECT key, pri, id, body FROM {w} WHERE {ok}`,
		},
		partPutScheduled: {
			"put_scheduled", []column{colKey, colAux, colID, colBytes}, "key, due, id, body",
			upsertEach("scheduled", "key, due, id, body", "key, due, id", "body = EXCLUDED.body"),
		},
		partPutLeases: {
			"put_leases", []column{colKey, colID, colBytes}, "key, id, body",
			upsertEach("lease", "key, id, body", "key, id", "body = EXCLUDED.body"),
		},
		partPutDead: {
			"put_dead", []column{colKey, colID, colBytes}, "key, id, body",
			upsertEach("dead", "key, id, body", "key, id", "body = EXCLUDED.body"),
		},
		partPutRequests: {
			"put_requests", []column{colKey, colBytes, colID, colAux}, "key, name, id, at",
			upsertEach("request", "key, name, id, at", "key, name", "id = EXCLUDED.id, at = EXCLUDED.at"),
		},
		partMeta: {
			"meta", []column{colKey, colSmall, colBytes, colAux}, "key, flags, acks, backlog",
			fmt.Sprintf(`UPDATE {s}.partition p SET released = w.flags & %d <> 0, may_hold = w.flags & %d <> 0, listed = w.flags & %d <> 0, `+
				`acks = w.acks, backlog = w.backlog FROM {w} WHERE p.key = ANY({first}) AND p.key = w.key AND {ok}`, flagReleased, flagMayHold, flagListed),
		},
	}
}

// set is a set of parts, bit by bit.
type set uint16

func (p set) has(part int) bool { return p&(1<<part) != 0 }

// commitText builds the statement with the given parts. Its first two values are
// the keys and epochs of the partitions.
func (s *statements) commitText(use set) string {
	lock := "FOR SHARE"
	switch {
	case use == 0:
		lock = "" // nothing is written: it only asks who holds the partitions
	case use.has(partMeta):
		lock = "FOR NO KEY UPDATE" // at once, as two that share a lock may wait for each other
	}
	var b strings.Builder
	b.WriteString(`WITH fence AS MATERIALIZED (SELECT key, epoch, node, run_id, address FROM {s}.partition` +
		` WHERE key = ANY($1::int8[]) ORDER BY key ` + lock + `),` +
		` ok AS MATERIALIZED (SELECT f.key FROM fence f WHERE ((f.key, f.epoch) IN` +
		` (SELECT w.key, w.epoch FROM unnest($1::int8[], $2::int8[]) w(key, epoch))) IS TRUE)`)
	next := 3
	for i, p := range s.parts {
		if !use.has(i) {
			continue
		}
		values := make([]string, len(p.columns))
		for j, c := range p.columns {
			values[j] = fmt.Sprintf("$%d::%s[]", next, c.sqlType())
			next++
		}
		text := strings.NewReplacer(
			"{first}", values[0],
			"{w}", "unnest("+strings.Join(values, ", ")+") w("+p.names+")",
			"{ok}", "(w.key IN (SELECT key FROM ok)) IS TRUE", // so written it is a look-up in a hash, not a join
		).Replace(p.text)
		fmt.Fprintf(&b, ",\n %s AS (%s)", p.name, text)
	}
	b.WriteString("\nSELECT key, epoch, node, run_id, address FROM fence")
	return inSchema(s.schema, b.String())
}

// commit returns the text of the commit with the given parts.
func (s *statements) commit(use set) string {
	s.commits.Lock()
	defer s.commits.Unlock()
	text, ok := s.commits.texts[use]
	if !ok {
		text = s.commitText(use)
		s.commits.texts[use] = text
	}
	return text
}

// values are the columns of one part.
type values struct {
	key, id, aux []int64
	small        []int16
	bytes        [][]byte
}

func (v *values) of(c column) any {
	switch c {
	case colKey:
		return v.key
	case colSmall:
		return v.small
	case colID:
		return v.id
	case colAux:
		return v.aux
	default:
		return v.bytes
	}
}

// batch is what one commit statement does.
type batch struct {
	keys, epochs []int64
	parts        [partCount]values
	body         []byte // bodies are written into it one after the other
}

// statement returns the batch as a statement.
func (b *batch) statement(sql *statements) statement {
	var use set
	args := []any{b.keys, b.epochs}
	for i := range sql.parts {
		v := &b.parts[i]
		if len(v.key) == 0 {
			continue
		}
		use |= 1 << i
		for _, c := range sql.parts[i].columns {
			args = append(args, v.of(c))
		}
	}
	return statement{sql.commit(use), args}
}

// add puts a mutation of the partition with the given key into the batch.
func (b *batch) add(k key, m *row.Mutation) {
	b.keys = append(b.keys, int64(k))
	epoch := int64(m.Epoch)
	if m.Epoch == 0 {
		epoch = -1 // a row that nobody took has epoch 0
	}
	b.epochs = append(b.epochs, epoch)
	b.addDeletes(int64(k), m)
	b.addPuts(int64(k), m)
	if m.Meta != nil {
		b.addMeta(int64(k), m.Meta)
	}
}

func (b *batch) addDeletes(k int64, m *row.Mutation) {
	for _, r := range m.DeleteRanges {
		v := b.of(partDeleteRanges, k)
		v.small, v.id, v.aux = append(v.small, int16(r.Priority)), append(v.id, signed(r.From)), append(v.aux, signed(r.To))
	}
	for _, t := range m.DeleteTasks {
		v := b.of(partDeleteTasks, k)
		v.small, v.id = append(v.small, int16(t.Priority)), append(v.id, signed(t.ID))
	}
	for _, d := range m.DeleteScheduled {
		v := b.of(partDeleteScheduled, k)
		v.aux, v.id = append(v.aux, int64(d.Due)), append(v.id, signed(d.ID))
	}
	for _, id := range m.DeleteLeases {
		v := b.of(partDeleteLeases, k)
		v.id = append(v.id, signed(id))
	}
	for _, id := range m.DeleteDead {
		v := b.of(partDeleteDead, k)
		v.id = append(v.id, signed(id))
	}
	for _, id := range m.DeleteRequests {
		v := b.of(partDeleteRequests, k)
		v.bytes = append(v.bytes, requestName(id))
	}
}

func (b *batch) addPuts(k int64, m *row.Mutation) {
	for _, t := range m.PutTasks {
		v := b.of(partPutTasks, k)
		v.small, v.id = append(v.small, int16(t.Task.Priority)), append(v.id, signed(t.Task.ID))
		v.bytes = append(v.bytes, b.encoded(func(to []byte) []byte { return row.AppendTask(to, t) }))
	}
	for _, t := range m.PutScheduled {
		v := b.of(partPutScheduled, k)
		v.aux, v.id = append(v.aux, int64(t.Due)), append(v.id, signed(t.Task.ID))
		v.bytes = append(v.bytes, b.encoded(func(to []byte) []byte { return row.AppendTask(to, t) }))
	}
	for _, l := range m.PutLeases {
		v := b.of(partPutLeases, k)
		v.id = append(v.id, signed(l.ID))
		v.bytes = append(v.bytes, b.encoded(func(to []byte) []byte { return row.AppendLease(to, l) }))
	}
	for _, d := range m.PutDead {
		v := b.of(partPutDead, k)
		v.id = append(v.id, signed(d.Task.ID))
		v.bytes = append(v.bytes, b.encoded(func(to []byte) []byte { return row.AppendDead(to, d) }))
	}
	for _, q := range m.PutRequests {
		v := b.of(partPutRequests, k)
		v.bytes = append(v.bytes, requestName(q.RequestID))
		v.id, v.aux = append(v.id, signed(q.ID)), append(v.aux, int64(q.At))
	}
}

func (b *batch) addMeta(k int64, m *row.Meta) {
	var flags int16
	for flag, on := range map[int16]bool{flagReleased: m.Released, flagMayHold: m.MayHold, flagListed: m.Listed} {
		if on {
			flags |= flag
		}
	}
	v := b.of(partMeta, k)
	v.small, v.bytes, v.aux = append(v.small, flags), append(v.bytes, encodeAcks(*m)), append(v.aux, m.Backlog)
}

// of returns the values of a part after a row for the partition was begun.
func (b *batch) of(part int, k int64) *values {
	v := &b.parts[part]
	v.key = append(v.key, k)
	return v
}

// encoded returns what f appends. When the buffer grows, what was written before
// stays in the old one.
func (b *batch) encoded(f func([]byte) []byte) []byte {
	start := len(b.body)
	b.body = f(b.body)
	return b.body[start:len(b.body):len(b.body)]
}
