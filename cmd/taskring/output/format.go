package output

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// Format is the form in which data is printed. It is a flag value.
type Format string

// The formats.
const (
	Table Format = "table"
	JSON  Format = "json"
)

// String returns the format as it is typed.
func (f *Format) String() string { return string(*f) }

// Type names the flag's values in help texts.
func (f *Format) Type() string { return "json|table" }

// Set reads a format.
func (f *Format) Set(s string) error {
	switch Format(s) {
	case Table, JSON:
		*f = Format(s)
		return nil
	}
	return fmt.Errorf("%q is not one of json, table", s)
}

// Flag adds -o to a command and returns where its value will stand.
func Flag(cmd *cobra.Command) *Format {
	format := Table
	cmd.Flags().VarP(&format, "output", "o", "how to print: table for people, json with one object a line for programs")
	_ = cmd.RegisterFlagCompletionFunc("output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{string(JSON), string(Table)}, cobra.ShellCompDirectiveNoFileComp
	})
	return &format
}

// Line writes v as one line of JSON.
func Line(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("writing JSON: %w", err)
	}
	return nil
}
