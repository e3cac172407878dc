package dynamicconfig

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// lineOf finds the line in an error of the YAML library.
var lineOf = regexp.MustCompile(`^line (\d+): `)

// countedFromZero begins the messages in which the YAML library counts lines
// from 0: those of its grammar. Those of its scanner count from 1.
var countedFromZero = regexp.MustCompile(
	`^(did not find expected (<|node content|',' or|key|'-' indicator)|found duplicate|found incompatible|found undefined tag handle)`)

// unknownAnchor finds the name in the message about an alias of nothing.
var unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)

// syntax records an error of the YAML library, which stops at the first one. The
// library leaves out the line when that is the first one, and in some messages
// always: those are looked for in the content.
func (p *parser) syntax(content []byte, err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	line, column := 1, 0
	if found := lineOf.FindStringSubmatch(text); found != nil {
		line, _ = strconv.Atoi(found[1]) // digits; more of them than an int holds do not occur
		text = strings.TrimPrefix(text, found[0])
		if countedFromZero.MatchString(text) {
			line++
		}
	} else if offset := offsetOf(content, text); offset >= 0 {
		line, column = placeOf(content, offset)
	}
	if at := tabIn(content, line); at > 0 {
		column, text = at, "the line is indented with a tab; YAML takes only spaces there"
	} else if strings.HasPrefix(text, "found character that cannot start any token") {
		text += "; a text that begins with @, ` or % stands in quotes"
	}
	p.problems = append(p.problems, Problem{Line: line, Column: column, Text: "not YAML: " + text})
}

// offsetOf returns where in the content lies what a message without a line is
// about, -1 when that is not known.
func offsetOf(content []byte, message string) int {
	if found := unknownAnchor.FindStringSubmatch(message); found != nil {
		alias := regexp.MustCompile(`(?m)(?:^|[\s\[{,:])(\*` + regexp.QuoteMeta(found[1]) + `)(?:$|[\s\]},:])`)
		if at := alias.FindSubmatchIndex(content); at != nil {
			return at[2]
		}
		return -1
	}
	if !strings.Contains(message, "UTF-8") && !strings.Contains(message, "control characters") {
		return -1
	}
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && size == 1 || isControl(r) {
			return i
		}
		i += size
	}
	return -1
}

// isControl reports whether YAML forbids a character.
func isControl(r rune) bool {
	return r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 && r != 0x85 || r == 0xfffe || r == 0xffff
}

// placeOf returns line and column of an offset, both from 1, the column in
// characters as the YAML library counts it.
func placeOf(content []byte, offset int) (line, column int) {
	before := content[:offset]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// tabIn returns the column of a tab in the indentation of a line, 0 for none.
func tabIn(content []byte, line int) int {
	for range line - 1 {
		_, content, _ = bytes.Cut(content, []byte("\n"))
	}
	spaces := len(content) - len(bytes.TrimLeft(content, " "))
	if spaces < len(content) && content[spaces] == '\t' {
		return spaces + 1
	}
	return 0
}
