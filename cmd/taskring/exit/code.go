// Package exit decides with which code the command ends and what its last words
// are: what is wrong, and what to do next.
//
// The codes are part of the command's interface: scripts branch on them. They
// stand in one table, [Codes], which is also the help topic "exit-codes".
package exit

import (
	"fmt"
	"strings"
)

// Code is the exit code of the process.
type Code int

// The exit codes. Numbers are never given a new meaning.
const (
	OK          Code = 0
	Failure     Code = 1
	Usage       Code = 2
	NotFound    Code = 3
	Unavailable Code = 4
	StoreBroken Code = 74 // pebble.ExitStoreBroken
	Interrupted Code = 130
)

// Meaning is a line of the table of exit codes.
type Meaning struct {
	Code Code
	Text string
}

// Codes returns every exit code with its meaning, ascending.
func Codes() []Meaning {
	return []Meaning{
		{OK, "done; also a server or a worker that was asked to stop and did"},
		{Failure, "not done, for a reason that a repetition does not mend"},
		{Usage, "a flag, an argument or a variable is wrong; nothing was tried"},
		{NotFound, "the task or the task queue does not exist; tasks vanish when finished"},
		{Unavailable, "no node answered, or it could not take the request now; try again"},
		{StoreBroken, "the server's store failed; what was acknowledged is safe, start it again"},
		{Interrupted, "a signal ended the command before it was done"},
	}
}

// Help is the text of the help topic "exit-codes".
func Help() string {
	var b strings.Builder
	b.WriteString("Exit codes of taskring:\n\n")
	for _, m := range Codes() {
		fmt.Fprintf(&b, "  %3d  %s\n", m.Code, m.Text)
	}
	return b.String()
}
