package ring

import (
	"fmt"
	"testing"
)

// sizes are the numbers of nodes that are measured.
var sizes = []int{1, 3, 10, 50, 200}

func BenchmarkLookup(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			r := mustNew(b, DefaultFormat(), named(n))
			keys := someKeys()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.Lookup(KeyOf(keys[i&1023]))
				i++
			}
		})
	}
}

func BenchmarkLookupAt(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			r := mustNew(b, DefaultFormat(), named(n))
			keys := someKeys()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.At(KeyOf(keys[i&1023]), i&7)
				i++
			}
		})
	}
}

func BenchmarkLookupN(b *testing.B) {
	r := mustNew(b, DefaultFormat(), named(200))
	for _, n := range []int{8, 16, 32} {
		b.Run(fmt.Sprintf("nodes=200/n=%d", n), func(b *testing.B) {
			dst := make([]Node, 0, n)
			keys := someKeys()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				r.LookupN(dst, KeyOf(keys[i&1023]), n)
				i++
			}
		})
	}
}

// BenchmarkPlainClosest is what the library itself offers for a list of nodes.
func BenchmarkPlainClosest(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			plain := libraryRing(DefaultFormat(), named(n))
			keys := someKeys()
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if _, err := plain.GetClosestN([]byte(keys[i&1023]), min(8, n)); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

// BenchmarkBuild builds whole rings; what the lists cost beyond the library, which is
// BenchmarkPlainBuild, is the difference.
func BenchmarkBuild(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			for b.Loop() {
				mustNew(b, DefaultFormat(), named(n))
			}
		})
	}
}

func BenchmarkPlainBuild(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			for b.Loop() {
				libraryRing(DefaultFormat(), named(n))
			}
		})
	}
}

// someKeys returns 1,024 keys as they look in use.
func someKeys() []string {
	keys := make([]string, 1024)
	for i := range keys {
		keys[i] = fmt.Sprintf("default:order-processing-%d:2", i)
	}
	return keys
}
