package matching

import (
	"net"
	"os"
	"path/filepath"
)

// advertised returns the address that a node tells others: the host as it was
// configured, with the port that was taken. A node that listens on all addresses
// tells its host's name, as no other machine could make use of 0.0.0.0; where
// there is no such name, the loopback address.
func advertised(configured string, taken net.Addr) string {
	host, _, _ := net.SplitHostPort(configured) // it was listened on: it can be split
	_, port, _ := net.SplitHostPort(taken.String())
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
		if name, err := os.Hostname(); err == nil && name != "" {
			host = name
		}
	}
	return net.JoinHostPort(host, port)
}

// absolute returns the path from the root, for messages that are read by somebody
// who does not know the working directory of the process.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
