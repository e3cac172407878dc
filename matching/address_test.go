package matching

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestAdvertised(t *testing.T) {
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	taken := &net.TCPAddr{IP: net.IPv6unspecified, Port: 7233}
	for configured, want := range map[string]string{
		"127.0.0.1:0":         "127.0.0.1:7233",
		"queue.example.com:0": "queue.example.com:7233",
		"[fd00::1]:7233":      "[fd00::1]:7233",
		"0.0.0.0:7233":        name + ":7233",
		"[::]:0":              name + ":7233",
		":7233":               name + ":7233",
	} {
		if got := advertised(configured, taken); got != want {
			t.Errorf("a node at %s tells %s, want %s", configured, got, want)
		}
	}
}

func TestAbsolute(t *testing.T) {
	if got := absolute("data"); !filepath.IsAbs(got) || filepath.Base(got) != "data" {
		t.Errorf("absolute path %s", got)
	}
}
