package output

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// IsTerminal reports whether someone watches w.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetTermios(int(file.Fd()), unix.TCGETS)
	return err == nil
}
