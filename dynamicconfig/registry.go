package dynamicconfig

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Registry is the settings that a process knows. It is immutable.
type Registry struct {
	byKey    map[string]*Definition // by lower-case key, also former and removed ones
	settings []*Definition          // by key, without the removed ones
	keys     []string               // of settings
}

// NewRegistry collects what the packages of a process declare. It refuses, all at
// once, keys that two settings claim and declarations that contradict themselves.
// A setting that several packages read, and so list, counts once.
func NewRegistry(declared ...Declared) (*Registry, error) {
	r := &Registry{byKey: map[string]*Definition{}}
	var errs []error
	for _, d := range declared {
		def := d.Definition()
		if r.byKey[strings.ToLower(def.about.Key)] == def {
			continue
		}
		errs = append(errs, def.invalid)
		for _, key := range append([]string{def.about.Key}, def.about.Formerly...) {
			errs = append(errs, r.claim(key, def))
		}
		if def.removed == "" {
			r.settings = append(r.settings, def)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("dynamic settings: %w", err)
	}
	slices.SortFunc(r.settings, func(a, b *Definition) int { return cmp.Compare(a.about.Key, b.about.Key) })
	for _, def := range r.settings {
		r.keys = append(r.keys, def.about.Key)
	}
	return r, nil
}

// Settings returns the settings by key, without the removed ones.
func (r *Registry) Settings() []*Definition { return slices.Clone(r.settings) }

// Find returns the setting that a key or a former key names, in any letter case.
// The error of an unknown key suggests one that is near.
func (r *Registry) Find(key string) (*Definition, error) {
	def := r.byKey[strings.ToLower(key)]
	switch {
	case def == nil:
		return nil, fmt.Errorf("%q is not a setting%s", key, didYouMean(key, r.keys))
	case def.removed != "":
		return nil, fmt.Errorf("%s: the setting is gone: %s", key, def.removed)
	}
	return def, nil
}

func (r *Registry) claim(key string, def *Definition) error {
	lower := strings.ToLower(key)
	if r.byKey[lower] != nil {
		return fmt.Errorf("the key %q is declared twice", key)
	}
	r.byKey[lower] = def
	return nil
}

// keyForm is how keys look: words with dots between them.
var keyForm = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9]*(\.[a-zA-Z][a-zA-Z0-9]*)+$`)

// checkDeclaration reports what is wrong with a setting as it was declared.
func checkDeclaration[T any](t Type[T]) error {
	var errs []error
	for _, key := range append([]string{t.about.Key}, t.about.Formerly...) {
		if !keyForm.MatchString(key) {
			errs = append(errs, fmt.Errorf("setting %q: a key is words with dots between them, such as matching.maxLeases", key))
		}
	}
	if t.about.Doc == "" {
		errs = append(errs, fmt.Errorf("setting %q: Doc is missing", t.about.Key))
	}
	for _, field := range t.about.Fields {
		if isForm := pick(field.Key, []string{wordValue, wordConstraints}); isForm != "" && t.list {
			errs = append(errs, fmt.Errorf("setting %q: a field of a list's struct may not be called %s, the file's form uses the word", t.about.Key, field.Key))
		}
	}
	if err := t.check(t.fallback); err != nil {
		errs = append(errs, fmt.Errorf("setting %q: the default: %w", t.about.Key, err))
	}
	return errors.Join(errs...)
}
