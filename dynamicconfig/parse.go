package dynamicconfig

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// entry is a value under constraints.
type entry struct {
	def *Definition
	Constraints
	value  any
	line   int // 0 when it comes from no file
	column int
	index  int32 // in the snapshot
}

// Parse reads a file. It takes all of it or nothing: the error is [Problems] and
// holds everything that is wrong. An empty file is a snapshot of all defaults.
// What is to be warned of is in [Snapshot.Warnings].
func (r *Registry) Parse(content []byte) (*Snapshot, error) {
	p := &parser{registry: r}
	if root := p.document(content); root != nil {
		p.sections(root)
	}
	if len(p.problems) > 0 {
		return nil, p.problems.sorted()
	}
	sum := sha256.Sum256(content)
	return newSnapshot(p.entries, hex.EncodeToString(sum[:hashBytes]), p.warnings.sorted()), nil
}

// section is what a file says under one key.
type section struct {
	key, value *yaml.Node
	former     bool // the key is a former one of the setting
}

// sections reads the whole file: first which settings it has, so that a former
// key steps back behind the present one, then their values.
func (p *parser) sections(root *yaml.Node) {
	if root.Kind != yaml.MappingNode {
		hint := ""
		if root.Kind == yaml.ScalarNode && strings.Contains(root.Value, ":") {
			hint = "; a space has to follow the colon"
		}
		p.refusef(root, "%s is not a mapping from keys of settings to values%s", say(root), hint)
		return
	}
	found := map[*Definition]section{}
	var order []*Definition
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := follow(root.Content[i]), follow(root.Content[i+1])
		def, former := p.recognize(key, value)
		if def == nil {
			continue
		}
		this := section{key, value, former}
		first, twice := found[def]
		if twice {
			this = p.meet(first, this)
		} else {
			order = append(order, def)
		}
		found[def] = this
	}
	for _, def := range order {
		p.section(def, found[def])
	}
	p.key = ""
}

// recognize returns the setting of a key, nil for none, and whether the key is a
// former one of it.
func (p *parser) recognize(key, value *yaml.Node) (*Definition, bool) {
	p.key = ""
	if key.Kind != yaml.ScalarNode {
		p.refusef(key, "%s is not the key of a setting", say(key))
		return nil, false
	}
	def := p.registry.byKey[strings.ToLower(key.Value)]
	if def == nil {
		p.unknown(key, value)
		return nil, false
	}
	p.key = def.about.Key
	if def.removed != "" {
		p.warnf(key, "the setting is gone, the entry has no effect: %s", def.removed)
		return nil, false
	}
	former := !strings.EqualFold(key.Value, def.about.Key)
	if former {
		p.key = key.Value
		p.warnf(key, "the setting is now called %s; this name will not be read for ever", def.about.Key)
	}
	return def, former
}

// unknown refuses a key that is none of a setting.
func (p *parser) unknown(key, value *yaml.Node) {
	if isMerge(key) {
		p.refusef(key, noMerging)
		return
	}
	keys := p.keysToSuggest()
	if value.Kind == yaml.MappingNode && len(value.Content) > 0 && isGroup(key.Value, keys) {
		whole := key.Value + "." + value.Content[0].Value
		p.refusef(key, "%q is not a setting; keys are written in one, as in %s", shorten(key.Value), cmp.Or(nearest(whole, keys), shorten(whole)))
		return
	}
	p.refusef(key, "%q is not a setting%s", shorten(key.Value), didYouMean(key.Value, keys))
}

// isGroup reports whether a word is what keys begin with, before a dot.
func isGroup(word string, keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		return strings.HasPrefix(strings.ToLower(key), strings.ToLower(word)+".")
	})
}

// keysToSuggest returns the keys that an unknown one is compared with. To compare
// is dear; a file with very many unknown keys is another program's.
func (p *parser) keysToSuggest() []string {
	const most = 100
	if len(p.problems) > most {
		return nil
	}
	return p.registry.keys
}

// meet decides between two sections of one setting.
func (p *parser) meet(first, second section) section {
	switch {
	case first.former && !second.former:
		p.key = first.key.Value
		p.warnf(first.key, "it has no effect beside %s", second.key.Value)
		return second
	case second.former && !first.former:
		p.key = second.key.Value
		p.warnf(second.key, "it has no effect beside %s", first.key.Value)
		return first
	default:
		p.refusef(second.key, "the setting stands here a second time, the first is in line %d", first.key.Line)
		return first
	}
}

// section reads what stands under the key of a setting.
func (p *parser) section(def *Definition, s section) {
	p.key = s.key.Value
	switch {
	case isNull(s.value):
		p.refusef(s.key, "it has no value: give it one, or remove the key to have the default %s", def.about.Default)
	case s.value.Kind == yaml.SequenceNode && isLongForm(def, s.value):
		p.entryList(def, s.value)
	case !def.about.isMapping() && hasEntryWord(s.value):
		p.refusef(s.value, `entries stand in a list: begin each with "- ", as in "- value: ..."`)
	default:
		p.add(def, Constraints{}, s.value)
	}
}

// hasEntryWord reports whether a node is a mapping with a word of an entry.
func hasEntryWord(node *yaml.Node) bool {
	for i := 0; node.Kind == yaml.MappingNode && i < len(node.Content); i += 2 {
		if pick(node.Content[i].Value, []string{wordValue, wordConstraints}) != "" {
			return true
		}
	}
	return false
}

// isLongForm tells a list of entries from a value that is a list itself.
func isLongForm(def *Definition, list *yaml.Node) bool {
	if !def.list {
		return true
	}
	if len(list.Content) == 0 {
		return false
	}
	return hasEntryWord(follow(list.Content[0]))
}

func (p *parser) entryList(def *Definition, list *yaml.Node) {
	lines := map[Constraints]int{}
	for _, item := range list.Content {
		item = follow(item)
		var value *yaml.Node
		c, sane := Constraints{}, true
		p.mapping(item, []string{wordValue, wordConstraints}, func(word string, node *yaml.Node) {
			if word == wordValue {
				value = node
			} else {
				c, sane = p.constraints(node, def.about.Scope)
			}
		})
		switch {
		case item.Kind != yaml.MappingNode: // has been refused
		case value == nil:
			p.refusef(item, "the entry has no %s", wordValue)
		case sane && lines[c] > 0:
			p.refusef(item, "a second entry for %v, the first is in line %d", c, lines[c])
		case sane:
			lines[c] = item.Line
			p.add(def, c, value)
		default:
			def.typ.readAny(p, value) // for what else is wrong
		}
	}
}

func (p *parser) add(def *Definition, c Constraints, node *yaml.Node) {
	value, ok := def.typ.readAny(p, node)
	if ok {
		p.entries = append(p.entries, entry{def: def, Constraints: c, value: value, line: node.Line, column: node.Column})
	}
}
