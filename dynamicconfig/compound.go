package dynamicconfig

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// List is some values of one kind, in order.
type List[T any] struct {
	Key      string
	Default  []T
	Of       Spec[T] // its Key, Default and Doc are not used
	MaxItems int     // default 100
	Unit     string
	Doc      string
	Formerly []string
	Effect   Effect
}

// Type implements [Spec].
func (l List[T]) Type() Type[[]T] {
	item := l.Of.Type()
	most := orDefault(l.MaxItems, 100)
	return Type[[]T]{
		about: Description{
			Key: l.Key, Type: "list of " + item.about.Type, Unit: l.Unit, Bounds: bound(item.about, most),
			Doc: l.Doc, Formerly: l.Formerly, Effect: l.Effect, Choices: item.about.Choices, Fields: item.about.Fields,
		},
		list:     true,
		fallback: l.Default,
		read:     func(p *parser, node *yaml.Node) ([]T, bool) { return readList(p, node, item, most) },
		check:    func(values []T) error { return checkAll(item, slices.Values(values), len(values), most) },
		format: func(values []T) string {
			texts := make([]string, len(values))
			for i, v := range values {
				texts[i] = item.format(v)
			}
			return "[" + strings.Join(texts, ", ") + "]"
		},
		equal: func(a, b []T) bool { return slices.EqualFunc(a, b, item.equal) },
	}
}

func readList[T any](p *parser, node *yaml.Node, item Type[T], most int) ([]T, bool) {
	node = follow(node)
	switch {
	case !p.count(node):
		return nil, false
	case node.Kind != yaml.SequenceNode:
		p.refusef(node, "%s is not a list", say(node))
		return nil, false
	case len(node.Content) > most:
		p.refusef(node, "the list has %d items, the limit is %d", len(node.Content), most)
		return nil, false
	}
	values := make([]T, 0, len(node.Content))
	sane := true
	for _, child := range node.Content {
		value, ok := item.read(p, child)
		values = append(values, value)
		sane = sane && ok
	}
	return values, sane
}

// Map is some values of one kind by name.
type Map[T any] struct {
	Key      string
	Default  map[string]T
	Of       Spec[T] // its Key, Default and Doc are not used
	MaxItems int     // default 100
	Unit     string
	Doc      string
	Formerly []string
	Effect   Effect
}

// Type implements [Spec].
func (m Map[T]) Type() Type[map[string]T] {
	item := m.Of.Type()
	most := orDefault(m.MaxItems, 100)
	return Type[map[string]T]{
		about: Description{
			Key: m.Key, Type: "map of " + item.about.Type, Unit: m.Unit, Bounds: bound(item.about, most),
			Doc: m.Doc, Formerly: m.Formerly, Effect: m.Effect, Choices: item.about.Choices, Fields: item.about.Fields,
		},
		fallback: m.Default,
		read:     func(p *parser, node *yaml.Node) (map[string]T, bool) { return readMap(p, node, item, most) },
		check:    func(values map[string]T) error { return checkAll(item, maps.Values(values), len(values), most) },
		format: func(values map[string]T) string {
			texts := make([]string, 0, len(values))
			for _, name := range slices.Sorted(maps.Keys(values)) {
				texts = append(texts, quoteText(name)+": "+item.format(values[name]))
			}
			return "{" + strings.Join(texts, ", ") + "}"
		},
		equal: func(a, b map[string]T) bool { return maps.EqualFunc(a, b, item.equal) },
	}
}

func readMap[T any](p *parser, node *yaml.Node, item Type[T], most int) (map[string]T, bool) {
	node = follow(node)
	switch {
	case !p.count(node):
		return nil, false
	case node.Kind != yaml.MappingNode:
		p.refusef(node, "%s is not a mapping from names to values", say(node))
		return nil, false
	case len(node.Content)/2 > most:
		p.refusef(node, "the mapping has %d names, the limit is %d", len(node.Content)/2, most)
		return nil, false
	}
	values := make(map[string]T, len(node.Content)/2)
	sane := true
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := follow(node.Content[i])
		value, ok := item.read(p, node.Content[i+1])
		_, twice := values[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || isNull(key):
			p.refusef(key, "%s is not a name", say(key))
			ok = false
		case twice:
			p.refusef(key, "the name %s stands here a second time", say(key))
			ok = false
		}
		values[key.Value] = value
		sane = sane && ok
	}
	return values, sane
}

// Struct is several values that are set together. A field that a file leaves out
// has its default, whatever other entries say.
type Struct[T any] struct {
	Key      string
	Fields   []Field[T]
	Check    func(T) error // of the fields together; nil = none
	Doc      string
	Formerly []string
	Effect   Effect
}

// Field is a field of a [Struct]. Made by [FieldOf].
type Field[S any] struct {
	about Description
	reset func(*S) // to the default
	read  func(p *parser, node *yaml.Node, into *S) bool
	check func(*S) error
	text  func(*S) string
	equal func(a, b *S) bool
}

// FieldOf describes a field by the spec of its values, whose Key is its name, and
// by where it lies:
//
//	FieldOf(Int{Key: "width", Default: 100, Doc: "Columns."}, func(c *Counter) *int { return &c.Width })
func FieldOf[S, T any](spec Spec[T], at func(*S) *T) Field[S] {
	typ := spec.Type()
	typ.about.Default = typ.format(typ.fallback)
	return Field[S]{
		about: typ.about,
		reset: func(s *S) { *at(s) = typ.fallback },
		read: func(p *parser, node *yaml.Node, into *S) bool {
			value, ok := typ.read(p, node)
			*at(into) = value
			return ok
		},
		check: func(s *S) error { return typ.check(*at(s)) },
		text:  func(s *S) string { return typ.format(*at(s)) },
		equal: func(a, b *S) bool { return typ.equal(*at(a), *at(b)) },
	}
}

// Type implements [Spec].
func (s Struct[T]) Type() Type[T] {
	about := Description{Key: s.Key, Type: "struct", Doc: s.Doc, Formerly: s.Formerly, Effect: s.Effect}
	for _, f := range s.Fields {
		about.Fields = append(about.Fields, f.about)
	}
	return Type[T]{
		about: about, fallback: s.defaults(), read: s.read, check: s.check,
		format: func(v T) string {
			texts := make([]string, len(s.Fields))
			for i, f := range s.Fields {
				texts[i] = f.about.Key + ": " + f.text(&v)
			}
			return "{" + strings.Join(texts, ", ") + "}"
		},
		equal: func(a, b T) bool {
			return !slices.ContainsFunc(s.Fields, func(f Field[T]) bool { return !f.equal(&a, &b) })
		},
	}
}

func (s Struct[T]) defaults() T {
	var v T
	for _, f := range s.Fields {
		f.reset(&v)
	}
	return v
}

func (s Struct[T]) read(p *parser, node *yaml.Node) (T, bool) {
	v := s.defaults()
	if !p.count(node) {
		return v, false
	}
	names := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		names[i] = f.about.Key
	}
	before := len(p.problems)
	p.mapping(node, names, func(name string, value *yaml.Node) {
		s.Fields[slices.Index(names, name)].read(p, value, &v)
	})
	if len(p.problems) > before {
		return v, false
	}
	if s.Check != nil {
		if err := s.Check(v); err != nil {
			p.refusef(follow(node), "%v", err)
			return v, false
		}
	}
	return v, true
}

func (s Struct[T]) check(v T) error {
	var errs []error
	for _, f := range s.Fields {
		if err := f.check(&v); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.about.Key, err))
		}
	}
	if s.Check != nil {
		errs = append(errs, s.Check(v))
	}
	return errors.Join(errs...)
}

// bound describes the bounds of a collection.
func bound(item Description, most int) string {
	text := "at most " + strconv.Itoa(most) + " items"
	if item.Bounds != "" {
		text += ", each " + item.Bounds
	}
	return text
}

// checkAll checks the items of a collection.
func checkAll[T any](item Type[T], values func(func(T) bool), have, most int) error {
	var errs []error
	if have > most {
		errs = append(errs, fmt.Errorf("%d items, the limit is %d", have, most))
	}
	for v := range values {
		errs = append(errs, item.check(v))
	}
	return errors.Join(errs...)
}

func orDefault(n, d int) int {
	if n == 0 {
		return d
	}
	return n
}
