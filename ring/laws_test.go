package ring

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/buraksezer/consistent"
	"pgregory.net/rapid"
)

// The tests below are the laws of the package's doc, under their numbers.

// named returns n nodes of weight 1.
func named(n int) []Node {
	nodes := make([]Node, n)
	for i := range nodes {
		nodes[i] = Node{Name: fmt.Sprintf("node-%d", i), Weight: 1, Address: fmt.Sprintf("10.0.0.%d:7233", i)}
	}
	return nodes
}

// mustNew builds a ring that cannot fail to be built.
func mustNew(t interface {
	Helper()
	Fatal(args ...any)
}, f Format, nodes []Node,
) *Ring {
	t.Helper()
	r, err := New(f, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// drawFormat draws a format that is cheap to build.
func drawFormat(t *rapid.T) Format {
	return Format{
		Slots:       rapid.IntRange(1, 300).Draw(t, "slots"),
		Replication: rapid.IntRange(1, 8).Draw(t, "replication"),
		Load:        rapid.Float64Range(1, 3).Draw(t, "load"),
		MaxPoints:   200,
	}
}

// drawNodes draws up to 40 nodes of weight 0 to 3, each name once; often more than
// there are drawn positions.
func drawNodes(t *rapid.T) []Node {
	n := rapid.OneOf(rapid.IntRange(0, 10), rapid.IntRange(25, 40)).Draw(t, "nodes")
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z0-9.:-]{3,12}`), n, n, rapid.ID[string]).Draw(t, "names")
	nodes := make([]Node, len(names))
	for i, name := range names {
		nodes[i] = Node{Name: name, Weight: rapid.IntRange(0, 3).Draw(t, "weight"), Address: name}
	}
	return nodes
}

// sameRing fails unless both rings give every slot the same list of names.
func sameRing(t *rapid.T, a, b *Ring) {
	t.Helper()
	if a.Fingerprint() != b.Fingerprint() {
		t.Fatalf("fingerprints differ: %x and %x", a.Fingerprint(), b.Fingerprint())
	}
	for slot := range a.Format().Slots {
		// A key that is a small number is the slot of that number.
		x, y := namesOf(a.LookupN(nil, Key(slot), a.Len())), namesOf(b.LookupN(nil, Key(slot), b.Len()))
		if !slices.Equal(x, y) {
			t.Fatalf("slot %d: %v and %v", slot, x, y)
		}
	}
}

func namesOf(nodes []Node) []string {
	names := make([]string, len(nodes))
	for i, n := range nodes {
		names[i] = n.Name
	}
	return names
}

func TestLaw1PureFunctionOfTheSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, nodes := drawFormat(t), drawNodes(t)
		want := mustNew(t, f, nodes)

		shuffled := rapid.Permutation(nodes).Draw(t, "order")
		if len(nodes) > 0 {
			twice := rapid.SliceOfN(rapid.SampledFrom(nodes), 0, 10).Draw(t, "twice")
			shuffled = append(shuffled, twice...)
		}
		sameRing(t, want, mustNew(t, f, shuffled))

		// A history: other sets come and go before.
		b, err := NewBuilder(f)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(0, 3).Draw(t, "history") {
			before := drawNodes(t)
			if len(nodes) > 0 && rapid.Bool().Draw(t, "a weight only") {
				before = slices.Clone(nodes)
				before[0].Weight++
			}
			if _, err := b.Build(before); err != nil {
				t.Fatal(err)
			}
		}
		got, err := b.Build(shuffled)
		if err != nil {
			t.Fatal(err)
		}
		sameRing(t, want, got)
	})
}

// member is a member of a ring that is made with the library alone.
type member string

func (m member) String() string { return string(m) }

// libraryRing makes a ring with the library alone, over sorted names.
func libraryRing(f Format, nodes []Node) *consistent.Consistent {
	names := namesOf(nodes)
	slices.Sort(names)
	members := make([]consistent.Member, len(names))
	for i, name := range names {
		members[i] = member(name)
	}
	return consistent.New(members, consistent.Config{
		Hasher: hasher{}, PartitionCount: f.Slots, ReplicationFactor: f.Replication, Load: f.Load,
	})
}

func TestLaw2OwnerIsThatOfTheLibrary(t *testing.T) {
	check := func(t *rapid.T, f Format, nodes []Node) {
		r, plain := mustNew(t, f, nodes), libraryRing(f, nodes)
		for range 100 {
			key := rapid.String().Draw(t, "key")
			owner, ok := r.Lookup(KeyOf(key))
			if want := plain.LocateKey([]byte(key)); !ok || owner.Name != want.String() {
				t.Fatalf("key %q: %q, the library says %q", key, owner.Name, want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		nodes := drawNodes(t)
		for i := range nodes {
			nodes[i].Weight = 1
		}
		if len(nodes) > 0 {
			check(t, drawFormat(t), nodes)
		}
	})
	t.Run("default format", func(t *testing.T) {
		r, plain := mustNew(t, DefaultFormat(), named(10)), libraryRing(DefaultFormat(), named(10))
		for slot := range DefaultFormat().Slots {
			owner, _ := r.Lookup(Key(slot))
			if want := plain.GetPartitionOwner(slot).String(); owner.Name != want {
				t.Fatalf("slot %d: %q, the library says %q", slot, owner.Name, want)
			}
		}
	})
}

func TestLaw3Lists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, nodes := drawFormat(t), drawNodes(t)
		r := mustNew(t, f, nodes)
		k := Key(rapid.Uint64().Draw(t, "key"))
		owner, ok := r.Lookup(k)
		if ok != (r.Len() > 0) {
			t.Fatalf("Lookup says %v with %d nodes", ok, r.Len())
		}
		for _, n := range []int{-1, 0} {
			if got := r.LookupN(nil, k, n); len(got) != 0 {
				t.Fatalf("LookupN(%d) = %v", n, got)
			}
		}
		var shorter []Node
		for n := 1; n <= r.Len()+2; n++ {
			list := r.LookupN(nil, k, n)
			if len(list) != min(n, r.Len()) {
				t.Fatalf("LookupN(%d) has %d nodes of %d", n, len(list), r.Len())
			}
			if !slices.Equal(list[:len(shorter)], shorter) {
				t.Fatalf("LookupN(%d) = %v, which does not begin with %v", n, namesOf(list), namesOf(shorter))
			}
			if list = slices.Clone(list); len(list) > 0 && list[0] != owner {
				t.Fatalf("the list begins with %v, the owner is %v", list[0], owner)
			}
			names := namesOf(list)
			slices.Sort(names)
			if len(slices.Compact(names)) != len(list) {
				t.Fatalf("LookupN(%d) = %v holds a node twice", n, namesOf(list))
			}
			shorter = list
		}
	})
}

// TestListsAgainstTheRule compares whole lists with the rule of the package's doc,
// written down as plainly as it can be.
func TestListsAgainstTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, nodes := drawFormat(t), drawNodes(t)
		r := mustNew(t, f, nodes)
		if r.Len() == 0 {
			return
		}
		slot := rapid.IntRange(0, f.Slots-1).Draw(t, "slot")
		left := r.Nodes()
		for i, got := range r.LookupN(nil, Key(slot), r.Len()) {
			if i == 0 { // law 2
				left = slices.DeleteFunc(left, func(n Node) bool { return n == got })
				continue
			}
			best := slices.MaxFunc(left, func(a, b Node) int {
				x, y := plainScore(slot, i, a), plainScore(slot, i, b)
				if x == y {
					return strings.Compare(b.Name, a.Name)
				}
				if x < y {
					return -1
				}
				return 1
			})
			if got != best {
				t.Fatalf("slot %d, position %d: %q, the rule says %q", slot, i, got.Name, best.Name)
			}
			left = slices.DeleteFunc(left, func(n Node) bool { return n == best })
		}
	})
}

// plainScore is the score of a node at a position of the list of a slot.
func plainScore(slot, position int, n Node) uint64 {
	var b [8]byte
	for i := range b {
		b[i] = byte(slot >> (8 * i))
	}
	slotHash := hasher{}.Sum64(b[:])
	key := mix64(slotHash + uint64(min(position, 16))*0x9e3779b97f4a7c15)
	score := mix64(hasher{}.Sum64([]byte(n.Name)) ^ key)
	for i := 1; i < n.Weight; i++ {
		score = max(score, mix64(hasher{}.Sum64([]byte(fmt.Sprintf("%s#%d", n.Name, i)))^key))
	}
	return score
}

func TestLaw4AtWraps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := mustNew(t, drawFormat(t), drawNodes(t))
		k := Key(rapid.Uint64().Draw(t, "key"))
		list := r.LookupN(nil, k, r.Len())
		for i := range 3*r.Len() + 1 {
			got, ok := r.At(k, i)
			if ok != (len(list) > 0) || (ok && got != list[i%len(list)]) {
				t.Fatalf("At(%d) = %v, %v; the list is %v", i, got, ok, namesOf(list))
			}
		}
		if _, ok := r.At(k, -1); ok {
			t.Fatal("At(-1) gives a node")
		}
	})
}

func TestLaw5SlotsOfANodeAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, nodes := drawFormat(t), drawNodes(t)
		r := mustNew(t, f, nodes)
		points, total := 0, 0
		for _, n := range r.Nodes() {
			points += n.Weight
		}
		for i, owned := range r.Owned() {
			n := r.Nodes()[i]
			most := n.Weight * int(math.Ceil(float64(f.Slots)/float64(points)*f.Load))
			if owned > most {
				t.Fatalf("%q of weight %d owns %d slots, the bound is %d", n.Name, n.Weight, owned, most)
			}
			total += owned
		}
		if r.Len() > 0 && total != f.Slots {
			t.Fatalf("%d slots are owned, there are %d", total, f.Slots)
		}
	})
}

func TestLaw7NoPanic(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for n := range 201 {
		f := Format{Slots: 1 + rng.IntN(400), Replication: 1 + rng.IntN(3), Load: 1 + rng.Float64()/5, MaxPoints: 200}
		switch n % 4 {
		case 0:
			f.Load = 1
		case 1:
			f.Slots = max(n, 1)
		}
		r, err := New(f, named(n))
		if err != nil {
			t.Fatalf("%d nodes, %+v: %v", n, f, err)
		}
		if got := len(r.LookupN(nil, Key(rng.Uint64()), n+1)); got != n {
			t.Fatalf("%d nodes, %+v: a list of %d", n, f, got)
		}
	}
}

func TestLaw7APanicLeavesTheOldRing(t *testing.T) {
	b, err := NewBuilder(Format{Slots: 31, Replication: 3, Load: 1.2, MaxPoints: 10})
	if err != nil {
		t.Fatal(err)
	}
	before, err := b.Build(named(3))
	if err != nil {
		t.Fatal(err)
	}
	locate := b.locate
	b.locate = func([]consistent.Member, consistent.Config) *consistent.Consistent { panic("not enough room") }
	got, err := b.Build(named(4))
	if err == nil || !strings.Contains(err.Error(), "not enough room") {
		t.Fatalf("error %v does not name the panic", err)
	}
	if got != before || b.Current() != before {
		t.Fatal("the old ring is not in use any more")
	}
	b.locate = locate
	if got, err = b.Build(named(4)); err != nil || got.Len() != 4 || b.Current() != got {
		t.Fatalf("the next build gives %d nodes, %v", got.Len(), err)
	}
}

// TestLaw8AReaderSeesOneTable swaps two rings under readers; every list that they
// see is whole and of one of the two.
func TestLaw8AReaderSeesOneTable(t *testing.T) {
	f := Format{Slots: 31, Replication: 3, Load: 1.2, MaxPoints: 40}
	small, large := mustNew(t, f, named(5)), mustNew(t, f, named(20))
	var current atomic.Pointer[Ring]
	current.Store(small)
	var readers sync.WaitGroup
	for reader := range 4 {
		readers.Go(func() {
			var dst [20]Node
			for i := range 5000 {
				k := Key(i*4 + reader)
				got := current.Load().LookupN(dst[:0], k, 20)
				want := small
				if len(got) == 20 {
					want = large
				}
				if !slices.Equal(got, want.LookupN(nil, k, 20)) {
					t.Errorf("key %d: a list of neither ring: %v", k, namesOf(got))
					return
				}
			}
		})
	}
	for i := range 5000 {
		current.Store([]*Ring{small, large}[i%2])
	}
	readers.Wait()
}

func TestLaw9MetadataChangesNoTable(t *testing.T) {
	b, err := NewBuilder(DefaultFormat())
	if err != nil {
		t.Fatal(err)
	}
	before, err := b.Build(named(3))
	if err != nil {
		t.Fatal(err)
	}
	moved := named(3)
	moved[1].Address, moved[1].RunID = "10.9.9.9:7233", "second run"
	after, err := b.Build(moved)
	if err != nil {
		t.Fatal(err)
	}
	if after.table != before.table || after.Fingerprint() != before.Fingerprint() {
		t.Error("the table was built anew")
	}
	seen := false
	for slot := range DefaultFormat().Slots {
		old, _ := before.Lookup(Key(slot))
		now, _ := after.Lookup(Key(slot))
		if old.Name != now.Name {
			t.Fatalf("slot %d went from %q to %q", slot, old.Name, now.Name)
		}
		if now.Name == "node-1" {
			seen = true
			if now != moved[1] || old != named(3)[1] {
				t.Fatalf("slot %d: %+v before, %+v after", slot, old, now)
			}
		}
	}
	if !seen {
		t.Error("node-1 owns nothing")
	}
}
