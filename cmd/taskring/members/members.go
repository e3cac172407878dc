// Package members is how commands are told the nodes of a ring: a list of names,
// with weights where they are not 1.
package members

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/ring"
)

// Flag adds a flag for the nodes to a command and returns where its value will
// stand, for [Ring].
func Flag(cmd *cobra.Command, name string) *[]string {
	return cmd.Flags().StringSlice(name, nil,
		"names of the nodes, NAME or NAME=WEIGHT, with commas or by repeating the flag; for a fixed list of addresses a name is HOST:PORT (required)")
}

// Parse reads the value of the flag that [Flag] added under a name.
func Parse(flag string, list []string) ([]ring.Node, error) {
	if len(list) == 0 {
		return nil, exit.Usagef("no node is named; say which with --%s NAME,...", flag)
	}
	nodes := make([]ring.Node, 0, len(list))
	seen := map[string]bool{}
	for _, entry := range list {
		name, text, weighted := strings.Cut(entry, "=")
		n := ring.Node{Name: strings.TrimSpace(name), Weight: 1}
		if weighted {
			weight, err := strconv.ParseUint(text, 10, 64)
			if err != nil || weight > math.MaxInt32 {
				return nil, exit.Usagef("--%s: the weight of %q is %q, it has to be an integer, 0 for a node that drains", flag, name, text)
			}
			n.Weight = int(weight)
		}
		if err := ring.ValidateName(n.Name); err != nil {
			return nil, exit.Usagef("--%s: %w", flag, err)
		}
		if seen[n.Name] {
			return nil, exit.Usagef("--%s: node %q is named twice", flag, n.Name)
		}
		seen[n.Name] = true
		nodes = append(nodes, n)
	}
	return nodes, nil
}

// Ring builds the ring of these nodes, as every process of the cluster does.
func Ring(flag string, list []string) (*ring.Ring, []ring.Node, error) {
	nodes, err := Parse(flag, list)
	if err != nil {
		return nil, nil, err
	}
	r, err := ring.New(ring.DefaultFormat(), nodes)
	if err != nil {
		return nil, nil, exit.Usagef("--%s: %w", flag, err)
	}
	return r, nodes, nil
}

// Time is a flag value: an instant, now when it is not given.
type Time struct{ at time.Time }

// AddTo adds --at to a command.
func (t *Time) AddTo(cmd *cobra.Command, usage string) { cmd.Flags().Var(t, "at", usage) }

// String returns the instant as it is typed, empty when it was not given.
func (t *Time) String() string {
	if t.at.IsZero() {
		return ""
	}
	return t.at.Format(time.RFC3339)
}

// Type names the flag's values in help texts.
func (t *Time) Type() string { return "time" }

// Set reads an instant.
func (t *Time) Set(s string) error {
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return exit.Usagef("%q is not a time with date and zone such as 2026-12-01T10:00:00Z", s)
	}
	t.at = at
	return nil
}

// Or returns the instant, or now when it was not given.
func (t *Time) Or(now time.Time) time.Time {
	if t.at.IsZero() {
		return now
	}
	return t.at
}
