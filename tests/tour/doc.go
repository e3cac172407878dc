// Package tour reads the README and takes its tour: the commands are run as they
// are printed, against a node of their own, and the output must be what the
// README shows. Its Go program is run too, and must be the file that it says it is.
//
// A tour block is a fenced console block behind a line "<!-- tour -->". Lines
// that begin with "$ " are commands, the lines up to the next one their output.
// In the output "…" stands for any text within a line, and a line that is only
// "…" for any number of lines.
package tour

import (
	"regexp"
	"strings"
)

// Step is one command of the tour and the output that the README shows.
type Step struct {
	Line    int // of the command, in the README
	Command string
	Output  []string
}

const (
	mark   = "<!-- tour -->"
	fence  = "```"
	prompt = "$ "
	some   = "…" // stands for any text
)

// Steps returns the steps of all tour blocks of a text, in order.
func Steps(text string) []Step {
	var steps []Step
	marked, inside := false, false
	for i, line := range strings.Split(text, "\n") {
		switch {
		case inside && strings.HasPrefix(line, fence):
			inside = false
		case inside && strings.HasPrefix(line, prompt):
			steps = append(steps, Step{Line: i + 1, Command: strings.TrimPrefix(line, prompt)})
		case inside && len(steps) > 0:
			last := &steps[len(steps)-1]
			last.Output = append(last.Output, line)
		case strings.TrimSpace(line) == mark:
			marked = true
		case marked && strings.HasPrefix(line, fence):
			marked, inside = false, true
		}
	}
	return steps
}

// Matches reports whether a command's output is what the step shows.
func (s Step) Matches(output string) bool {
	var pattern strings.Builder
	pattern.WriteString("^")
	for _, line := range s.Output {
		if line == some {
			pattern.WriteString(`(?:.*\n)*`)
			continue
		}
		for i, part := range strings.Split(strings.TrimRight(line, " "), some) {
			if i > 0 {
				pattern.WriteString(`.*`)
			}
			pattern.WriteString(regexp.QuoteMeta(part))
		}
		pattern.WriteString(` *\n`)
	}
	pattern.WriteString("$")
	return regexp.MustCompile(pattern.String()).MatchString(output)
}
