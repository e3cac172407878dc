package output

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"
)

func TestTable(t *testing.T) {
	var b bytes.Buffer
	err := WriteTable(&b, []Column{{Title: "ID", Right: true}, {Title: "STATE"}, {Title: "PAYLOAD", Cut: true}}, [][]string{
		{"7", "ready", "short"},
		{"1099511627777", "leased", strings.Repeat("x", 100)},
		{"9"},
	})
	want := strings.Join([]string{
		"           ID  STATE   PAYLOAD",
		"            7  ready   short",
		"1099511627777  leased  " + strings.Repeat("x", 56) + "…",
		"            9",
	}, "\n") + "\n"
	if err != nil || b.String() != want {
		t.Errorf("got, %v:\n%s\nwant:\n%s", err, b.String(), want)
	}
}

// TestTableFits shows that cells of any length leave lines within the width as
// long as the columns that are never cut fit.
func TestTableFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.SliceOfN(rapid.StringMatching(`[a-zäß ]{0,90}`), 2, 2), 0, 5).Draw(t, "rows")
		for _, row := range rows {
			row[0] = Shorten(row[0], 20)
		}
		var b bytes.Buffer
		if err := WriteTable(&b, []Column{{Title: "A"}, {Title: "B", Cut: true}}, rows); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > Width {
				t.Errorf("a line has %d columns: %q", n, line)
			}
		}
		if got := strings.Count(b.String(), "\n"); got != len(rows)+1 {
			t.Errorf("%d rows gave %d lines", len(rows), got)
		}
	})
}

func TestFieldsLeaveOutEmptyOnes(t *testing.T) {
	var b bytes.Buffer
	if err := WriteFields(&b, [][2]string{{"id", "7"}, {"what is not there", ""}, {"state", "ready"}}); err != nil {
		t.Fatal(err)
	}
	if want := "id     7\nstate  ready\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestIDIsAStringInJSON(t *testing.T) {
	var b bytes.Buffer
	if err := Line(&b, struct {
		ID ID `json:"id"`
	}{math.MaxUint64}); err != nil {
		t.Fatal(err)
	}
	if want := `{"id":"18446744073709551615"}` + "\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
	if !json.Valid(b.Bytes()) {
		t.Error("the line is no JSON")
	}
}

func TestText(t *testing.T) {
	for payload, want := range map[string]string{
		"plain":        "plain",
		"two\nlines":   "two␣lines",
		"\x1b[31mred":  "␣[31mred",
		"bytes \xff":   `"bytes \xff"`,
		"größer\tals ": "größer␣als ",
	} {
		if got := Text([]byte(payload)); got != want {
			t.Errorf("Text(%q) = %q, want %q", payload, got, want)
		}
	}
}

func TestAgo(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	for want, d := range map[string]time.Duration{
		"1h0m0s": time.Hour, "1m3s": 63*time.Second + 4*time.Millisecond, "2.5s": 2490 * time.Millisecond, "12ms": 12345 * time.Microsecond,
	} {
		if got := Ago(timestamppb.New(now.Add(-d)), now); got != want {
			t.Errorf("%v ago is %q, want %q", d, got, want)
		}
	}
	if Ago(nil, now) != "-" || Time(nil) != "" || Span(nil) != "" {
		t.Error("what is unset is not shown as such")
	}
}

func TestBufferIsNoTerminal(t *testing.T) {
	if IsTerminal(&bytes.Buffer{}) {
		t.Error("a buffer passes for a terminal")
	}
}

func TestUntilAndCount(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	if got := Until(timestamppb.New(now.Add(90*time.Second)), now); got != "1m30s" {
		t.Errorf("in 90 s is %q", got)
	}
	if got := Until(timestamppb.New(now.Add(-time.Second)), now); got != Now {
		t.Errorf("what was due is due %q", got)
	}
	if Until(nil, now) != "-" {
		t.Error("what is unset is not shown as such")
	}
	if a, b, c := Count(0, "task"), Count(1, "task"), Count(2, "task"); a != "0 tasks" || b != "1 task" || c != "2 tasks" {
		t.Errorf("%s, %s, %s", a, b, c)
	}
}
