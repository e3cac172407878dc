package partition

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseRPCName(t *testing.T) {
	for _, tc := range []struct {
		text   string
		queue  string
		number int32
		want   string // stands in the error; empty means accepted
	}{
		{"orders", "orders", 0, ""},
		{"a/b", "a/b", 0, ""},
		{"orders/3", "orders/3", 0, ""}, // a queue of that name
		{"/sys/orders/3", "/sys/orders/3", 0, ""},
		{"/_sys", "/_sys", 0, ""},
		{"/_sys/orders/3", "orders", 3, ""},
		{"/_sys/a/b/12", "a/b", 12, ""},
		{"/_sys/a:b/c:d/1", "a:b/c:d", 1, ""},
		{"/_sys/7/7", "7", 7, ""},
		{"/_sys//x/1", "/x", 1, ""},
		{"/_sys/q/2147483647", "q", math.MaxInt32, ""},

		{"", "", 0, "is empty"},
		{"/_sys/", "", 0, "lacks the number"},
		{"/_sys/orders", "", 0, "lacks the number"},
		{"/_sys/orders/", "", 0, "number is missing"},
		{"/_sys/orders/0", "", 0, "is the root"},
		{"/_sys/orders/00", "", 0, "leading zero"},
		{"/_sys/orders/03", "", 0, "leading zero"},
		{"/_sys/orders/+3", "", 0, "decimal digits"},
		{"/_sys/orders/-3", "", 0, "decimal digits"},
		{"/_sys/orders/3 ", "", 0, "decimal digits"},
		{"/_sys/orders/1_0", "", 0, "decimal digits"},
		{"/_sys/orders/0x1", "", 0, "leading zero"},
		{"/_sys/orders/٣", "", 0, "decimal digits"},
		{"/_sys/orders/x", "", 0, "decimal digits"},
		{"/_sys/orders/2147483648", "", 0, "above the highest, 2147483647"},
		{"/_sys/orders/99999999999999999999", "", 0, "above the highest"},
		{"/_sys//3", "", 0, "name is empty"},
		{"/_sys//_sys/a/1/2", "", 0, "reserved prefix"},
		{"/_sys/a\nb/1", "", 0, "control character"},
		{"/_sys/a\xff/1", "", 0, "UTF-8"},
		{"/_sys/" + strings.Repeat("x", MaxNameLength+1) + "/1", "", 0, "limit is 1000"},
	} {
		got, err := ParseRPCName("ns", tc.text, Activity)
		switch {
		case tc.want == "":
			if want := (Queue{"ns", tc.queue, Activity}).Partition(tc.number); err != nil || got != want {
				t.Errorf("%q gives %v, %v; want %v", tc.text, got, err, want)
			}
		case !errors.Is(err, ErrBadName) || !strings.Contains(err.Error(), tc.want):
			t.Errorf("%q: error %v does not say %q", tc.text, err, tc.want)
		case got != ID{}:
			t.Errorf("%q: an error comes with %v", tc.text, got)
		}
	}
	if _, err := ParseRPCName("", "orders", 9); !errors.Is(err, ErrBadName) || !strings.Contains(err.Error(), "namespace is empty") || !strings.Contains(err.Error(), "task type 9") {
		t.Errorf("error %v does not name what is wrong besides the name", err)
	}
}

// FuzzParseRPCName: what is accepted is written back letter by letter, so each
// partition has one name; and it is valid.
func FuzzParseRPCName(f *testing.F) {
	for _, s := range []string{"orders", "/_sys/orders/3", "/_sys/a/b/12", "/_sys/orders/03", "/_sys//1", "/_sys/1", "/", "/_sys/a/2147483648"} {
		f.Add("ns", s)
	}
	f.Fuzz(func(t *testing.T, namespace, text string) {
		p, err := ParseRPCName(namespace, text, Workflow)
		if err != nil {
			return
		}
		if got := p.RPCName(); got != text {
			t.Errorf("%q is read as %v, whose name is %q", text, p, got)
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%q is accepted, but: %v", text, err)
		}
	})
}

// FuzzRPCName is the other direction: every valid partition comes back.
func FuzzRPCName(f *testing.F) {
	f.Add("orders", int32(0))
	f.Add("/_sy", int32(3))
	f.Add("a/1", int32(math.MaxInt32))
	f.Fuzz(func(t *testing.T, name string, number int32) {
		p := Queue{"ns", name, Dispatch}.Partition(number)
		if p.Validate() != nil {
			return
		}
		if got, err := ParseRPCName("ns", p.RPCName(), Dispatch); err != nil || got != p {
			t.Errorf("%v has name %q, which gives %v, %v", p, p.RPCName(), got, err)
		}
	})
}

// drawID draws a valid partition with names that look like parts of each other.
func drawID(t *rapid.T) ID {
	name := rapid.OneOf(rapid.StringMatching(`[a-z:/_0-9]{1,9}`), rapid.StringMatching(`[a-z/]{1,3}(:[0-9]{1,2}){0,2}`))
	return ID{
		Queue: Queue{
			Namespace: name.Draw(t, "namespace"), Name: name.Draw(t, "queue"),
			Type: TaskType(rapid.IntRange(1, 3).Draw(t, "type")),
		},
		Number: rapid.OneOf(rapid.Int32Range(0, 40), rapid.Int32Range(0, math.MaxInt32)).Draw(t, "number"),
	}
}
