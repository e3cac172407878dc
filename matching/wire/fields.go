package wire

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/taskring/taskring/matching/task"
)

// Fields collects the bad fields of one request, so that all of them are
// refused at once. The zero value is ready; it belongs to one goroutine.
type Fields struct {
	bad []task.Violation
}

// Addf records that field is bad; the text says what is wrong and what would be
// right.
func (f *Fields) Addf(field, format string, args ...any) {
	f.bad = append(f.bad, task.Violation{Field: field, Description: fmt.Sprintf(format, args...)})
}

// OK reports whether no bad field was recorded.
func (f *Fields) OK() bool { return len(f.bad) == 0 }

// Err returns nil, or one INVALID error that names every bad field.
func (f *Fields) Err() error {
	if f.OK() {
		return nil
	}
	texts := make([]string, len(f.bad))
	for i, v := range f.bad {
		texts[i] = v.Field + " " + v.Description
	}
	e := task.Errorf(task.Invalid, "%s", strings.Join(texts, "; "))
	e.Violations = f.bad
	return e
}

// maxBytes refuses a value of more than limit bytes.
func (f *Fields) maxBytes(field string, size, limit int, setting string) {
	if size > limit {
		f.Addf(field, "is %d bytes long, the limit is %d (%s)", size, limit, setting)
	}
}

// text refuses a string of more than limit bytes, or one that utf8 refuses.
func (f *Fields) text(field, s string, limit int, setting string) {
	f.maxBytes(field, len(s), limit, setting)
	f.utf8(field, s)
}

// utf8 refuses strings that no message can carry. A request that came over the
// wire has none; one from within the process may, and a task with such a string
// could be stored but never be handed out.
func (f *Fields) utf8(field string, texts ...string) {
	for _, s := range texts {
		if !utf8.ValidString(s) {
			f.Addf(field, "holds %+.40q, which is not valid UTF-8", s)
			return
		}
	}
}

// duration reads an optional duration that must not be negative; 0 when unset
// or bad.
func (f *Fields) duration(field string, d *durationpb.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if err := d.CheckValid(); err != nil {
		f.Addf(field, "is no valid duration: %v", err)
		return 0
	}
	v := d.AsDuration()
	if v < 0 {
		f.Addf(field, "is %v, it must not be negative", v)
		return 0
	}
	return v
}

// time reads an optional time; the zero time when unset or bad.
func (f *Fields) time(field string, t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	if err := t.CheckValid(); err != nil {
		f.Addf(field, "is no valid timestamp: %v", err)
		return time.Time{}
	}
	return t.AsTime()
}

// lease reads an optional lease duration; 0 when unset or bad.
func (f *Fields) lease(field string, d *durationpb.Duration, lim Limits) time.Duration {
	if d == nil {
		return 0
	}
	before := len(f.bad)
	v := f.duration(field, d)
	if len(f.bad) > before {
		return 0
	}
	if v < lim.MinLease || v > lim.MaxLease {
		f.Addf(field, "is %v, it must be between %v (%s) and %v (%s)", v, lim.MinLease, SettingMinLease, lim.MaxLease, SettingMaxLease)
		return 0
	}
	return v
}
