package output

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Width is how many columns a table takes at most.
const Width = 80

// gap separates columns.
const gap = "  "

// Column is a column of a table.
type Column struct {
	Title string
	// Right aligns numbers.
	Right bool
	// Cut marks the column that is shortened when a line grows longer than
	// [Width]; without one nothing is shortened.
	Cut bool
}

// WriteTable writes rows under the titles of their columns. A row with fewer
// cells than columns is filled with empty ones.
func WriteTable(w io.Writer, columns []Column, rows [][]string) error {
	widths := columnWidths(columns, rows)
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.Title
	}
	for _, row := range append([][]string{titles}, rows...) {
		if _, err := fmt.Fprintln(w, formatRow(columns, widths, row)); err != nil {
			return fmt.Errorf("writing a table: %w", err)
		}
	}
	return nil
}

func columnWidths(columns []Column, rows [][]string) []int {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = utf8.RuneCountInString(c.Title)
		for _, row := range rows {
			if i < len(row) {
				widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
			}
		}
	}
	total := len(gap) * (len(columns) - 1)
	for _, n := range widths {
		total += n
	}
	for i, c := range columns {
		if c.Cut && total > Width {
			least := max(utf8.RuneCountInString(c.Title), 8)
			cut := min(total-Width, max(0, widths[i]-least))
			widths[i] -= cut
			total -= cut
		}
	}
	return widths
}

func formatRow(columns []Column, widths []int, row []string) string {
	var b strings.Builder
	for i, c := range columns {
		cell := ""
		if i < len(row) {
			cell = Shorten(row[i], widths[i])
		}
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
		if i > 0 {
			b.WriteString(gap)
		}
		if c.Right {
			b.WriteString(pad + cell)
		} else {
			b.WriteString(cell + pad)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// Shorten cuts s to n characters, the last of which then says so.
func Shorten(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-1, 0)]) + "…"
}

// WriteFields writes pairs of a name and a value, one a line, the values
// aligned. Pairs with an empty value are left out.
func WriteFields(w io.Writer, pairs [][2]string) error {
	width := 0
	for _, p := range pairs {
		if p[1] != "" {
			width = max(width, utf8.RuneCountInString(p[0]))
		}
	}
	for _, p := range pairs {
		if p[1] == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%-*s  %s\n", width, p[0], p[1]); err != nil {
			return fmt.Errorf("writing fields: %w", err)
		}
	}
	return nil
}
