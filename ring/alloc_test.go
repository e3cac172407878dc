//go:build !race

package ring

import "testing"

// TestLookupsDoNotAllocate is law 8; also for nodes beyond the drawn positions.
func TestLookupsDoNotAllocate(t *testing.T) {
	r := mustNew(t, DefaultFormat(), named(40))
	dst := make([]Node, 0, 40)
	buf := []byte("ns:orders:3:2")
	for name, lookup := range map[string]func(){
		"KeyOf":      func() { r.Lookup(KeyOf("ns:orders:3:2")) },
		"KeyOfBytes": func() { r.Lookup(KeyOfBytes(buf)) },
		"At":         func() { r.At(KeyOf("ns:orders:3:2"), 7) },
		"At, far":    func() { r.At(KeyOf("ns:orders:3:2"), 30) },
		"LookupN":    func() { r.LookupN(dst, KeyOf("ns:orders:3:2"), 8) },
		"whole list": func() { r.LookupN(dst, KeyOf("ns:orders:3:2"), 40) },
	} {
		if n := testing.AllocsPerRun(100, lookup); n != 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
