package task

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/taskring/taskring/partition"
)

func TestIDParts(t *testing.T) {
	for _, e := range []Epoch{1, 77, MaxEpoch} {
		for _, seq := range []uint64{1, 12345, 1<<SeqBits - 1} {
			id := MakeID(e, seq)
			if id.Epoch() != e || id.Seq() != seq {
				t.Errorf("MakeID(%d, %d) splits into %d, %d", e, seq, id.Epoch(), id.Seq())
			}
			back, err := ParseID(id.String())
			if err != nil || back != id {
				t.Errorf("ParseID(%q) = %v, %v", id, back, err)
			}
		}
	}
	if MakeID(2, 1) <= MakeID(1, 1<<SeqBits-1) {
		t.Error("an id of a later epoch is not above all ids of an earlier one")
	}
	for _, bad := range []string{"", "0", "-1", "1x", "18446744073709551616"} {
		if _, err := ParseID(bad); err == nil {
			t.Errorf("ParseID(%q) accepts", bad)
		}
	}
}

func TestMicros(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 678_000, time.UTC)
	if got := At(now).Time(); !got.Equal(now) {
		t.Errorf("round trip gives %v, want %v", got, now)
	}
	if At(time.Time{}) != 0 || !Micros(0).Time().IsZero() {
		t.Error("the zero time and 0 are not the same thing")
	}
	if d := At(now).Add(time.Second).Sub(At(now)); d != time.Second {
		t.Errorf("Add then Sub gives %v", d)
	}
}

func TestReasons(t *testing.T) {
	cause := errors.New("disk on fire")
	err := fmt.Errorf("adding: %w", Errorf(StoreUnavailable, "commit of 3 rows: %w", cause))
	if !errors.Is(err, StoreUnavailable) || errors.Is(err, LeaseLost) || !errors.Is(err, cause) {
		t.Errorf("errors.Is is wrong for %v", err)
	}
	if ReasonOf(err) != StoreUnavailable || ReasonOf(cause) != Internal || ReasonOf(LeaseLost) != LeaseLost {
		t.Error("ReasonOf is wrong")
	}
	for r := Internal; r <= DiskWatermark; r++ {
		if back, ok := ParseReason(r.String()); !ok || back != r {
			t.Errorf("ParseReason(%q) = %v, %v", r, back, ok)
		}
	}
	if _, ok := ParseReason("NO_SUCH"); ok {
		t.Error("ParseReason knows NO_SUCH")
	}
}

func sampleToken() Token {
	return Token{
		Store:     StoreID{1, 2, 3, 15: 9},
		Partition: partition.Queue{Namespace: "ns", Name: "a/b", Type: partition.Activity}.Partition(300),
		Grant:     Grant{ID: MakeID(7, 1000), Delivery: 3, Epoch: 8},
	}
}

func TestTokenRoundTrip(t *testing.T) {
	want := sampleToken()
	b := want.Append(nil)
	got, err := ParseToken(b)
	if err != nil || got != want {
		t.Fatalf("ParseToken = %+v, %v, want %+v", got, err, want)
	}
	for i := range b { // any single damaged byte is found
		damaged := append([]byte(nil), b...)
		damaged[i] ^= 0x40
		if _, err := ParseToken(damaged); !errors.Is(err, ErrBadToken) {
			t.Errorf("byte %d damaged: error %v", i, err)
		}
	}
	for i := range b { // and so is any cut
		if _, err := ParseToken(b[:i]); !errors.Is(err, ErrBadToken) {
			t.Errorf("cut to %d bytes: error %v", i, err)
		}
	}
}

// TestTokenNeverNamesNothing shows well-sealed tokens with bad contents.
func TestTokenNeverNamesNothing(t *testing.T) {
	for name, breakIt := range map[string]func(*Token){
		"no id":       func(t *Token) { t.Grant.ID = 0 },
		"no delivery": func(t *Token) { t.Grant.Delivery = 0 },
		"bad type":    func(t *Token) { t.Partition.Type = 9 },
		"no name":     func(t *Token) { t.Partition.Name = "" },
	} {
		tok := sampleToken()
		breakIt(&tok)
		if _, err := ParseToken(tok.Append(nil)); !errors.Is(err, ErrBadToken) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	f.Add(sampleToken().Append(nil))
	f.Add([]byte{TokenVersion})
	f.Fuzz(func(t *testing.T, b []byte) {
		tok, err := ParseToken(b)
		if err != nil {
			if !errors.Is(err, ErrBadToken) {
				t.Fatalf("error %v is not ErrBadToken", err)
			}
			return
		}
		again, err := ParseToken(tok.Append(nil))
		if err != nil || again != tok {
			t.Fatalf("%x parses to %+v, which reads back as %+v, %v", b, tok, again, err)
		}
	})
}
