package dynamicconfig

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Bool is a switch.
type Bool struct {
	Key      string
	Default  bool
	Doc      string
	Formerly []string
	Effect   Effect
}

// Type implements [Spec].
func (b Bool) Type() Type[bool] {
	return scalar[bool]{
		about:    Description{Key: b.Key, Type: "bool", Doc: b.Doc, Formerly: b.Formerly, Effect: b.Effect},
		fallback: b.Default,
		parse:    parseBool,
		format:   strconv.FormatBool,
	}.typ()
}

// Int is a number of things.
type Int struct {
	Key      string
	Default  int
	Min      int // so a setting is not negative unless it says so
	Max      int // 0 = no upper bound
	Unit     string
	Doc      string
	Formerly []string
	Effect   Effect
}

// Type implements [Spec].
func (i Int) Type() Type[int] {
	limits := span[int]{i.Min, i.Max, strconv.Itoa}
	return scalar[int]{
		about: Description{
			Key: i.Key, Type: "int", Unit: i.Unit, Bounds: limits.text(), Doc: i.Doc, Formerly: i.Formerly, Effect: i.Effect,
		},
		fallback: i.Default,
		parse:    parseInt,
		check:    limits.check,
		format:   strconv.Itoa,
	}.typ()
}

// Float is a measure, a rate or a share.
type Float struct {
	Key      string
	Default  float64
	Min      float64 // so a setting is not negative unless it says so
	Max      float64 // 0 = no upper bound
	Unit     string
	Doc      string
	Formerly []string
	Effect   Effect
}

// Type implements [Spec].
func (f Float) Type() Type[float64] {
	limits := span[float64]{f.Min, f.Max, formatFloat}
	return scalar[float64]{
		about: Description{
			Key: f.Key, Type: "float", Unit: f.Unit, Bounds: limits.text(), Doc: f.Doc, Formerly: f.Formerly, Effect: f.Effect,
		},
		fallback: f.Default,
		parse:    parseFloat,
		check:    func(v float64) error { return errors.Join(finite(v), limits.check(v)) },
		format:   formatFloat,
	}.typ()
}

// String is a text.
type String struct {
	Key      string
	Default  string
	Check    func(string) error // nil = any text; the error says what would be right
	Doc      string
	Formerly []string
	Effect   Effect
}

// Type implements [Spec].
func (s String) Type() Type[string] {
	return scalar[string]{
		about:    Description{Key: s.Key, Type: "string", Doc: s.Doc, Formerly: s.Formerly, Effect: s.Effect},
		fallback: s.Default,
		parse:    parseString,
		check:    s.Check,
		format:   quoteText,
	}.typ()
}

// scalar is what the kinds of one value have in common.
type scalar[T comparable] struct {
	about    Description
	fallback T
	parse    func(*yaml.Node) (T, error)
	check    func(T) error // nil = every value is right
	format   func(T) string
}

func (s scalar[T]) typ() Type[T] {
	if s.check == nil {
		s.check = func(T) error { return nil }
	}
	return Type[T]{
		about: s.about, scalar: true, fallback: s.fallback, check: s.check, format: s.format,
		equal: func(a, b T) bool { return a == b },
		read: func(p *parser, node *yaml.Node) (T, bool) {
			if !p.count(node) {
				return s.fallback, false
			}
			node = follow(node)
			value, err := s.parse(node)
			if err == nil {
				err = s.check(value)
			}
			if err != nil {
				p.refusef(node, "%v", err)
			}
			return value, err == nil
		},
	}
}

// span is the least and the greatest value; a max of zero is none.
type span[T cmp.Ordered] struct {
	min, max T
	format   func(T) string
}

func (s span[T]) check(v T) error {
	var zero T
	switch {
	case v < s.min:
		return fmt.Errorf("%s is below the minimum of %s", s.format(v), s.format(s.min))
	case s.max != zero && v > s.max:
		return fmt.Errorf("%s is above the maximum of %s", s.format(v), s.format(s.max))
	}
	return nil
}

func (s span[T]) text() string {
	var zero T
	if s.max == zero {
		return "at least " + s.format(s.min)
	}
	return s.format(s.min) + " to " + s.format(s.max)
}

func tagged(node *yaml.Node, tags ...string) bool {
	for _, tag := range tags {
		if node.Kind == yaml.ScalarNode && node.ShortTag() == tag {
			return true
		}
	}
	return false
}

func parseBool(node *yaml.Node) (bool, error) {
	value := strings.ToLower(node.Value)
	if !tagged(node, "!!bool") || (value != "true" && value != "false") {
		return false, fmt.Errorf("%s is neither true nor false", say(node))
	}
	return value == "true", nil
}

func parseInt(node *yaml.Node) (int, error) {
	digits := strings.ReplaceAll(node.Value, "_", "")
	n, err := strconv.Atoi(digits)
	switch {
	case tagged(node, "!!str") && err == nil:
		return 0, fmt.Errorf("%s is a text; write the integer without quotes", say(node))
	case tagged(node, "!!int", "!!float") && errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s does not fit an integer of 64 bits", say(node))
	case !tagged(node, "!!int"):
		return 0, fmt.Errorf("%s is not an integer", say(node))
	case err != nil || leadingZero(digits):
		// YAML reads 010 as eight; who writes it more often means ten.
		return 0, fmt.Errorf("%s is not written in decimal digits without leading zeros", say(node))
	}
	return n, nil
}

func leadingZero(digits string) bool {
	digits = strings.TrimLeft(digits, "+-")
	return len(digits) > 1 && digits[0] == '0'
}

func parseFloat(node *yaml.Node) (float64, error) {
	f, err := strconv.ParseFloat(strings.ReplaceAll(node.Value, "_", ""), 64)
	if tagged(node, "!!str") && err == nil {
		return 0, fmt.Errorf("%s is a text; write the number without quotes", say(node))
	}
	if !tagged(node, "!!int", "!!float") || err != nil {
		return 0, fmt.Errorf("%s is not a number", say(node))
	}
	return f, nil
}

func finite(v float64) error {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return errors.New("the number is not finite")
	}
	return nil
}

// formatFloat writes a number as people do: 1000000, not 1e+06.
func formatFloat(v float64) string {
	if size := math.Abs(v); size >= 1e-4 && size < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func parseString(node *yaml.Node) (string, error) {
	if !tagged(node, "!!str") {
		return "", fmt.Errorf("%s is not a text; write it in quotes", say(node))
	}
	return node.Value, nil
}

// quoteText returns a text as YAML, bare where that is read back as the same.
func quoteText(s string) string {
	for i, r := range s {
		letter := (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z')
		if !letter && (i == 0 || !strings.ContainsRune("0123456789-_./", r)) {
			return strconv.Quote(s)
		}
	}
	switch node := (&yaml.Node{Kind: yaml.ScalarNode, Value: s}); node.ShortTag() {
	case "!!str":
		return s
	default:
		return strconv.Quote(s)
	}
}
