package arch

import (
	"bytes"
	"path"
	"regexp"
	"strings"
)

// phrase is something that no file of the project may say.
type phrase struct {
	pattern *regexp.Regexp
	remedy  string
}

// phrases are what checkText looks for. Each pattern holds a bracket where it
// would otherwise match itself.
var phrases = []phrase{
	{
		regexp.MustCompile(`(^|[^\w.])/([w]ork|[r]oot|[h]ome/\w+|[t]mp/brief)/`),
		"a path of one machine: use a relative path, a flag or t.TempDir()",
	},
	{
		regexp.MustCompile(`(?i)\b([i]ssues?|[t]ickets?|[p]ull requests?|PR)\s*#\d+\b|\b(in|see|of|from|per) [i]ssue \d+\b`),
		"a reference to a tracker: say what the reader has to know here",
	},
	{
		regexp.MustCompile(`\b([T]ODO|[F]IXME|[X]XX|[H]ACK)\b`),
		"unfinished work: finish it, or say in the package's doc what is not supported",
	},
	{
		regexp.MustCompile(`(?i)\b([c]laude|[c]hatgpt|[c]opilot|[l]anguage model|AI[- ](agent|assistant|generated))\b`),
		"the project speaks of itself alone: drop it",
	},
	{
		regexp.MustCompile(`(?i)\b[a-z][\w.+-]*@[a-z][\w-]*\.(com|org|net|io|dev)\b`),
		"an address of a person: name no one; examples use the domain example.test",
	},
}

// unread are files whose wording is not the project's: generated ones, the
// licence, recorded fuzz inputs, and the bad examples of these rules.
func unread(name string, content []byte) bool {
	return name == "LICENSE" || path.Base(name) == "go.sum" || strings.HasSuffix(name, ".pb.go") ||
		strings.Contains(name, "testdata/fuzz/") || strings.HasPrefix(name, "tests/arch/testdata/") ||
		bytes.HasPrefix(content, []byte("// Code generated"))
}

// checkText wants every text file free of machine paths, tracker references,
// unfinished work and people.
func checkText(t *Tree) []Finding {
	var findings []Finding
	for name, content := range t.Texts {
		if unread(name, content) {
			continue
		}
		for i, line := range bytes.Split(content, []byte("\n")) {
			for _, said := range saidIn(line) {
				findings = append(findings, Finding{Path: name, Line: i + 1, Text: said})
			}
		}
	}
	return findings
}

// saidIn returns what is wrong with the words of a line.
func saidIn(line []byte) []string {
	var wrong []string
	for _, phrase := range phrases {
		if found := phrase.pattern.Find(line); found != nil {
			wrong = append(wrong, "says "+strings.Trim(string(found), " \t\"'`(=:,")+", "+phrase.remedy)
		}
	}
	return wrong
}
