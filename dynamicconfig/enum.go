package dynamicconfig

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Enum is a choice among named values. T is the type that the code uses.
type Enum[T comparable] struct {
	Key      string
	Default  T
	Choices  []Choice[T]
	Doc      string
	Formerly []string
	Effect   Effect
}

// Choice is one of the values of an [Enum].
type Choice[T comparable] struct {
	Name  string // in a file, in any letter case
	Value T
	Doc   string // when to choose it
}

// Type implements [Spec].
func (e Enum[T]) Type() Type[T] {
	about := Description{Key: e.Key, Type: "enum", Doc: e.Doc, Formerly: e.Formerly, Effect: e.Effect}
	names := make([]string, len(e.Choices))
	for i, c := range e.Choices {
		names[i] = c.Name
		about.Choices = append(about.Choices, Description{Key: c.Name, Doc: c.Doc})
	}
	about.Bounds = strings.Join(names, ", ")
	return scalar[T]{
		about:    about,
		fallback: e.Default,
		parse: func(node *yaml.Node) (T, error) {
			for _, c := range e.Choices {
				if node.Kind == yaml.ScalarNode && strings.EqualFold(node.Value, c.Name) {
					return c.Value, nil
				}
			}
			return e.Default, fmt.Errorf("%s is not one of %s%s", say(node), about.Bounds, didYouMean(node.Value, names))
		},
		check: func(value T) error {
			if e.name(value) == "" {
				return fmt.Errorf("%v is not one of %s", value, about.Bounds)
			}
			return nil
		},
		format: e.name,
	}.typ()
}

// name returns the name of a value, nothing when it is no choice.
func (e Enum[T]) name(value T) string {
	for _, c := range e.Choices {
		if c.Value == value {
			return c.Name
		}
	}
	return ""
}
