package dynamicconfig

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Duration is a time span. In a file it is a number with a unit, or several:
// 250ms, 1m30s, 7d; the units are ns, us, ms, s, m, h and d.
type Duration struct {
	Key      string
	Default  time.Duration
	Min      time.Duration // so a setting is not negative unless it says so
	Max      time.Duration // 0 = no upper bound
	Doc      string
	Formerly []string
	Effect   Effect
}

// Type implements [Spec].
func (d Duration) Type() Type[time.Duration] {
	limits := span[time.Duration]{d.Min, d.Max, formatDuration}
	return scalar[time.Duration]{
		about: Description{
			Key: d.Key, Type: "duration", Bounds: limits.text(), Doc: d.Doc, Formerly: d.Formerly, Effect: d.Effect,
		},
		fallback: d.Default,
		parse:    parseDuration,
		check:    limits.check,
		format:   formatDuration,
	}.typ()
}

// Size is a number of bytes. In a file it is a number, alone or with a unit:
// 1048576, 256KiB, 1.5GiB; the units are B, KiB, MiB, GiB, TiB and kB, MB, GB, TB.
type Size struct {
	Key      string
	Default  int64 // bytes
	Min      int64 // bytes
	Max      int64 // bytes; 0 = no upper bound
	Doc      string
	Formerly []string
	Effect   Effect
}

// Type implements [Spec].
func (s Size) Type() Type[int64] {
	limits := span[int64]{s.Min, s.Max, formatSize}
	return scalar[int64]{
		about: Description{
			Key: s.Key, Type: "size", Bounds: limits.text(), Doc: s.Doc, Formerly: s.Formerly, Effect: s.Effect,
		},
		fallback: s.Default,
		parse:    parseSize,
		check:    limits.check,
		format:   formatSize,
	}.typ()
}

const day = 24 * time.Hour

func parseDuration(node *yaml.Node) (time.Duration, error) {
	if node.Kind != yaml.ScalarNode || isNull(node) {
		return 0, fmt.Errorf("%s is not a duration such as 30s", say(node))
	}
	text, days := node.Value, time.Duration(0)
	if before, after, found := strings.Cut(text, "d"); found {
		n, err := strconv.ParseUint(before, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("%s is not a duration such as 30s, 1h30m or 7d", say(node))
		}
		text, days = after, time.Duration(n)*day
		if text == "" {
			return days, nil
		}
	}
	d, err := time.ParseDuration(text)
	switch {
	case err == nil && (d < 0 && days > 0 || d > math.MaxInt64-days):
		return 0, fmt.Errorf("%s is not a duration that can be told", say(node))
	case err == nil:
		return days + d, nil
	case tagged(node, "!!int", "!!float"):
		return 0, fmt.Errorf("%s has no unit; write a duration as 30s, 250ms or 7d", say(node))
	}
	return 0, fmt.Errorf("%s is not a duration such as 30s, 1h30m or 7d", say(node))
}

// formatDuration writes a duration without parts that are zero: 1h, not 1h0m0s.
func formatDuration(d time.Duration) string {
	if d >= day && d%day == 0 {
		return strconv.FormatInt(int64(d/day), 10) + "d"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// sizeUnit is a unit of sizes.
type sizeUnit struct {
	name  string
	bytes int64
}

// sizeUnits returns all units, the binary ones first and descending, which is the
// order in which a size is written.
func sizeUnits() []sizeUnit {
	return []sizeUnit{
		{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
		{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
	}
}

var errNoSize = errors.New("is not a size such as 64KiB, 1.5GiB or a number of bytes")

func parseSize(node *yaml.Node) (int64, error) {
	if node.Kind != yaml.ScalarNode || isNull(node) {
		return 0, fmt.Errorf("%s %w", say(node), errNoSize)
	}
	number, unit := node.Value, int64(1)
	for _, u := range sizeUnits() {
		before, found := strings.CutSuffix(number, u.name)
		if found {
			number, unit = strings.TrimRight(before, " "), u.bytes
			break
		}
	}
	if n, err := strconv.ParseInt(number, 10, 64); err == nil && !leadingZero(number) && n <= math.MaxInt64/unit && n >= math.MinInt64/unit {
		return n * unit, nil
	}
	f, err := strconv.ParseFloat(number, 64)
	if bytes := f * float64(unit); err == nil && unit > 1 && strings.Contains(number, ".") && math.Abs(bytes) < 1<<53 && bytes == math.Trunc(bytes) {
		return int64(bytes), nil
	}
	return 0, fmt.Errorf("%s %w", say(node), errNoSize)
}

// formatSize writes a size in the greatest binary unit that divides it.
func formatSize(bytes int64) string {
	for _, u := range sizeUnits()[:4] {
		if bytes != 0 && bytes%u.bytes == 0 {
			return strconv.FormatInt(bytes/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(bytes, 10)
}
