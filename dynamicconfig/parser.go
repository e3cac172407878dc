package dynamicconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxValues bounds the values that a file may come to when its aliases are
// written out: a file of 10,000 entries holds about 40,000.
const maxValues = 1_000_000

// parser reads one file and gathers what is wrong with it.
type parser struct {
	registry *Registry
	problems Problems
	warnings Problems
	entries  []entry
	key      string // whose section is being read
	values   int    // read so far
}

// refusef records that something at a node is wrong.
func (p *parser) refusef(node *yaml.Node, format string, args ...any) {
	p.problems = append(p.problems, Problem{node.Line, node.Column, p.key, fmt.Sprintf(format, args...)})
}

func (p *parser) warnf(node *yaml.Node, format string, args ...any) {
	p.warnings = append(p.warnings, Problem{node.Line, node.Column, p.key, fmt.Sprintf(format, args...)})
}

// document returns what the only document of a file holds; nil for none.
func (p *parser) document(content []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	root, err := decode(decoder)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		p.syntax(content, err)
		return nil
	}
	switch next, err := decode(decoder); {
	case err == nil:
		p.refusef(next, "a second document begins here; a file holds one")
	case !errors.Is(err, io.EOF):
		p.syntax(content, err)
	}
	if len(root.Content) == 0 || isNull(root.Content[0]) {
		return nil
	}
	return follow(root.Content[0])
}

// decode reads a document. The library gives up on some inputs by a panic; no
// file may end the process, so that is an error like any other.
func decode(decoder *yaml.Decoder) (node *yaml.Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the file cannot be read as YAML: %v", r)
		}
	}()
	node = &yaml.Node{}
	err = decoder.Decode(node)
	return node, err //nolint:wrapcheck // it is taken apart by syntax
}

// mapping calls each for the pairs of a mapping whose keys are among words, in
// the order of the file and with the key as it stands in words. It refuses what
// is no mapping, other keys and repeated ones.
func (p *parser) mapping(node *yaml.Node, words []string, each func(word string, value *yaml.Node)) {
	node = follow(node)
	if node.Kind != yaml.MappingNode {
		p.refusef(node, "%s is not a mapping with %s", say(node), strings.Join(words, ", "))
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], follow(node.Content[i+1])
		word := pick(key.Value, words)
		switch {
		case isMerge(key):
			p.refusef(key, noMerging)
		case key.Kind != yaml.ScalarNode || word == "":
			p.refusef(key, "%s is not one of %s%s", say(key), strings.Join(words, ", "), didYouMean(key.Value, words))
		case seen[word] > 0:
			p.refusef(key, "%s stands here a second time, the first is in line %d", word, seen[word])
		default:
			seen[word] = key.Line
			each(word, value)
		}
	}
}

// noMerging is what is said of merge keys: who reads a file should see what each
// entry holds.
const noMerging = "merge keys, <<, are not read: write out what they stand for"

func isMerge(key *yaml.Node) bool {
	return key.Kind == yaml.ScalarNode && key.ShortTag() == "!!merge"
}

// pick returns the word that equals s but for letter case, or nothing.
func pick(s string, words []string) string {
	for _, word := range words {
		if strings.EqualFold(s, word) {
			return word
		}
	}
	return ""
}

// count reports whether one more value may be read.
func (p *parser) count(node *yaml.Node) bool {
	p.values++
	if p.values == maxValues+1 {
		p.refusef(node, "the file comes to more than %d values when its aliases are written out", maxValues)
	}
	return p.values <= maxValues
}

// follow returns what an alias stands for, and any other node as it is.
func follow(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode && node.Alias != nil {
		return node.Alias
	}
	return node
}

func isNull(node *yaml.Node) bool {
	return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}

// say names what stands at a node, as the subject of a sentence.
func say(node *yaml.Node) string {
	switch {
	case isNull(node):
		return "nothing"
	case node.Kind == yaml.ScalarNode && node.ShortTag() == "!!str":
		return strconv.Quote(shorten(node.Value))
	case node.Kind == yaml.ScalarNode:
		return shorten(node.Value)
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	default:
		return "this"
	}
}

// shorten keeps messages readable whatever stands in the file.
func shorten(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
