package output

import (
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// ID is a task id: a string in JSON.
type ID uint64

// String returns the id in decimal.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// MarshalText makes the id a string in JSON.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// Time returns a time for JSON, RFC 3339 in UTC; empty when unset.
func Time(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().UTC().Format(time.RFC3339Nano)
}

// Instant returns a time to the millisecond, RFC 3339 in UTC.
func Instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// Span returns a duration as people read it; empty when unset.
func Span(d *durationpb.Duration) string {
	if d == nil {
		return ""
	}
	return Round(d.AsDuration()).String()
}

// Ago returns how long before now t was, as people read it; "-" when unset.
func Ago(t *timestamppb.Timestamp, now time.Time) string {
	if t == nil {
		return "-"
	}
	return Round(max(0, now.Sub(t.AsTime()))).String()
}

// Round drops the digits of a duration that no one reads.
func Round(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Microsecond)
}

// Int returns n in decimal.
func Int(n int64) string { return strconv.FormatInt(n, 10) }

// Count says how many things of a kind n is: "1 task", "2 tasks".
func Count(n int64, kind string) string {
	if n == 1 {
		return "1 " + kind
	}
	return Int(n) + " " + kind + "s"
}

// Now is what [Until] returns for a time that has come.
const Now = "now"

// Until returns how long after now t is, as people read it; [Now] when it is
// not, "-" when unset.
func Until(t *timestamppb.Timestamp, now time.Time) string {
	if t == nil {
		return "-"
	}
	if d := t.AsTime().Sub(now); d > 0 {
		return Round(d).String()
	}
	return Now
}

// Rate returns a rate per second with one decimal.
func Rate(r float64) string { return strconv.FormatFloat(r, 'f', 1, 64) }

// Text returns a payload as a cell of a table: text as it is on one line, bytes
// that are no text as a quoted string.
func Text(payload []byte) string {
	if !utf8.Valid(payload) {
		return strconv.QuoteToASCII(string(payload))
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '␣'
		}
		return r
	}, string(payload))
}
