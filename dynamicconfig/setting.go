package dynamicconfig

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/taskring/taskring/partition"
)

// Scope is what a setting has a value for.
type Scope uint8

// The scopes, each finer than the one before.
const (
	ScopeGlobal Scope = iota
	ScopeNamespace
	ScopeQueue
)

// String returns the scope as documents name it.
func (s Scope) String() string {
	switch s {
	case ScopeNamespace:
		return "namespace"
	case ScopeQueue:
		return "task queue"
	default:
		return "global"
	}
}

// Effect is when a change of a setting takes effect.
type Effect uint8

// The effects.
const (
	// Live is the default: at once, without a restart.
	Live Effect = iota
	// OnReload: the partitions concerned are unloaded and loaded again by
	// themselves, paced, not all at once.
	OnReload
)

// String returns the effect as documents describe it.
func (e Effect) String() string {
	if e == OnReload {
		return "partitions are reloaded, paced"
	}
	return "at once"
}

// Description is what people are told about a setting.
type Description struct {
	Key      string
	Type     string // "int", "duration", "list of string" and so on
	Unit     string // empty when the type says it
	Default  string // as it is written in a file
	Bounds   string // empty without any
	Doc      string
	Scope    Scope
	Effect   Effect
	Gradual  bool          // may change key by key
	Formerly []string      // keys under which the setting was known
	Choices  []Description // values of an enum: Key and Doc
	Fields   []Description // of a struct
}

// isMapping reports whether a plain value is a mapping.
func (d Description) isMapping() bool {
	return d.Type == "struct" || strings.HasPrefix(d.Type, "map of ")
}

// Spec describes the values of a setting. The kinds of this package, such as
// [Int], are specs; another one can be made by returning a changed one's type.
type Spec[T any] interface {
	// Type returns the type of the values. It is called once, where the setting
	// is declared.
	Type() Type[T]
}

// Type knows how values are read, checked, compared and written. Its zero value
// is of no use: it comes from a [Spec].
type Type[T any] struct {
	about    Description
	scalar   bool // may change gradually
	list     bool // a bare list in a file may be a value
	fallback T
	read     func(p *parser, node *yaml.Node) (T, bool) // reports what is wrong to p
	check    func(T) error
	format   func(T) string // as in a file, on one line
	equal    func(a, b T) bool
}

// Definition is a setting without its Go type: what a [Registry] works with.
type Definition struct {
	about   Description
	typ     erased
	list    bool   // as in Type
	invalid error  // what is wrong with the declaration
	removed string // not empty: the setting is gone, and this says what to do instead
}

// erased is a Type behind values of type any.
type erased interface {
	readAny(p *parser, node *yaml.Node) (any, bool)
	checkAny(v any) error
	formatAny(v any) string
	equalAny(a, b any) bool
	compile(entries []entry) any // gives *rules[T]
	resolve(rules any, q partition.Queue) (any, int)
}

// Declared is what a [Registry] collects: a setting, or a [Removed] one.
type Declared interface {
	// Definition returns what is declared. It is the same at each call.
	Definition() *Definition
}

// About returns the description of the setting. Its slices are shared: do not
// change them.
func (d *Definition) About() Description { return d.about }

// Removed declares that a setting existed once: its key in a file is a warning
// and no mistake.
type Removed struct {
	Key    string
	Advice string // what to do instead, as a sentence
}

// Definition implements [Declared].
func (r Removed) Definition() *Definition {
	return &Definition{about: Description{Key: r.Key, Doc: r.Advice}, removed: r.Advice}
}

// setting is what the settings of all scopes share.
type setting[T any] struct {
	typ Type[T]
	def *Definition
}

func declare[T any](spec Spec[T], scope Scope) setting[T] {
	typ := spec.Type()
	typ.about.Scope = scope
	typ.about.Default = typ.format(typ.fallback)
	def := &Definition{about: typ.about, typ: typ, list: typ.list, invalid: checkDeclaration(typ)}
	return setting[T]{typ: typ, def: def}
}

// find returns the rules of the setting, nil when all is at its default.
func (s *setting[T]) find(in *Snapshot) *rules[T] {
	if in == nil {
		return nil
	}
	compiled, ok := in.rules[s.def]
	if !ok {
		return nil
	}
	return compiled.(*rules[T]) //nolint:forcetypeassert // the definition compiled it
}

// GlobalSetting has one value in a process. Made by [Global].
type GlobalSetting[T any] struct{ setting[T] }

// NamespaceSetting has a value for each namespace. Made by [PerNamespace].
type NamespaceSetting[T any] struct{ setting[T] }

// QueueSetting has a value for each task queue. Made by [PerQueue].
type QueueSetting[T any] struct{ setting[T] }

// Global declares a setting with one value in a process.
func Global[T any](spec Spec[T]) *GlobalSetting[T] {
	return &GlobalSetting[T]{declare(spec, ScopeGlobal)}
}

// PerNamespace declares a setting with a value for each namespace.
func PerNamespace[T any](spec Spec[T]) *NamespaceSetting[T] {
	return &NamespaceSetting[T]{declare(spec, ScopeNamespace)}
}

// PerQueue declares a setting with a value for each task queue.
func PerQueue[T any](spec Spec[T]) *QueueSetting[T] {
	return &QueueSetting[T]{declare(spec, ScopeQueue)}
}

// Definition implements [Declared].
func (s *setting[T]) Definition() *Definition { return s.def }

// Default returns the value that holds where the file says nothing. Do not
// change what it refers to.
func (s *setting[T]) Default() T { return s.typ.fallback }

// Get returns the value in force. Do not change what it refers to.
func (s *GlobalSetting[T]) Get(in *Snapshot) T {
	if r := s.find(in); r != nil {
		return r.anywhere[0].value
	}
	return s.typ.fallback
}

// Get returns the value in force for a namespace. Do not change what it refers to.
func (s *NamespaceSetting[T]) Get(in *Snapshot, namespace string) T {
	if r := s.find(in); r != nil {
		return r.lookup(partition.Queue{Namespace: namespace}).value
	}
	return s.typ.fallback
}

// Get returns the value in force for a task queue. Do not change what it refers to.
func (s *QueueSetting[T]) Get(in *Snapshot, q partition.Queue) T {
	if r := s.find(in); r != nil {
		return r.lookup(q).value
	}
	return s.typ.fallback
}
