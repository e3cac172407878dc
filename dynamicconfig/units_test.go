package dynamicconfig

import (
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

func scalarNode(tb testing.TB, text string) *yaml.Node {
	tb.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Content) != 1 {
		tb.Fatalf("%q: %v", text, err)
	}
	return doc.Content[0]
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "250ms": 250 * time.Millisecond,
		"0": 0, "0s": 0, "1.5s": 1500 * time.Millisecond, `"2m"`: 2 * time.Minute, "-1s": -time.Second,
	} {
		if got, err := parseDuration(scalarNode(t, text)); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"30", "1.5", "1w", "d", "1.5d", "-1d", "1d-2h", "99999d24000000h", "~", "[1s]", "30 s", "true", "2026-12-01",
	} {
		if got, err := parseDuration(scalarNode(t, text)); err == nil {
			t.Errorf("%s is read as %v", text, got)
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "1048576": 1 << 20, "64KiB": 64 << 10, "64 KiB": 64 << 10, "1.5GiB": 3 << 29, "2kB": 2000, "3MB": 3e6, "10B": 10,
		"8191PiB": -1, "0.5B": -1, "1.0001KiB": -1, "-1KiB": -1024, "9999999TiB": -1, "1e3": -1, "07": -1, "KiB": -1, "1kb": -1, "~": -1,
	} {
		got, err := parseSize(scalarNode(t, text))
		if (err == nil) != (want != -1) || (err == nil && got != want) {
			t.Errorf("%s: %d, %v; want %d (-1 = refused)", text, got, err, want)
		}
	}
}

// TestUnitsRoundTrip: what is written is read back as the same.
func TestUnitsRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := time.Duration(rapid.Int64Range(0, int64(60_000*day)).Draw(rt, "duration"))
		if rapid.Bool().Draw(rt, "round") {
			d = d.Round(time.Hour)
		}
		if got, err := parseDuration(scalarNode(t, formatDuration(d))); err != nil || got != d {
			rt.Fatalf("%d ns is written %s and read %d, %v", d, formatDuration(d), got, err)
		}
		size := rapid.Int64Range(-1<<40, 1<<50).Draw(rt, "size") << rapid.IntRange(0, 12).Draw(rt, "shift")
		if got, err := parseSize(scalarNode(t, formatSize(size))); err != nil || got != size {
			rt.Fatalf("%d is written %s and read %d, %v", size, formatSize(size), got, err)
		}
		text := rapid.String().Draw(rt, "text")
		var back string
		if err := yaml.Unmarshal([]byte(quoteText(text)), &back); err == nil && back != text {
			rt.Fatalf("%q is written %s and read %q", text, quoteText(text), back)
		}
	})
}

func TestNearest(t *testing.T) {
	words := []string{"matching.pollOrder", "matching.numTaskqueueReadPartitions", "matching.numTaskqueueWritePartitions", "value"}
	for word, want := range map[string]string{
		"matching.polOrder":                   "matching.pollOrder",
		"MATCHING.POLLORDRE":                  "matching.pollOrder",
		"matching.numTaskQueueReadPartition":  "matching.numTaskqueueReadPartitions",
		"numTaskqueueWritePartitions":         "matching.numTaskqueueWritePartitions",
		"matching.numTaskqueueWrite":          "matching.numTaskqueueWritePartitions",
		"matching.numTaskqueue":               "",
		"valeu":                               "value",
		"x":                                   "",
		"":                                    "",
		"something.else.that.is.not.near.any": "",
	} {
		if got := nearest(word, words); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
