package arch

import "strings"

// Row is one package of the layout.
type Row struct {
	Level int
	// Path is relative to the module. A path that ends in "/..." stands for all
	// packages below it; these may import each other.
	Path string
	// Job is the single thing that the package does.
	Job string
	// Root packages wire: they may import their own children whatever the level.
	Root bool
	// Beside names packages of the same level that this one may import, with
	// the reason. Go itself refuses the cycles.
	Beside map[string]string
	// StandardOnly packages import nothing but the standard library.
	StandardOnly bool
}

// Layout returns the table of packages. An import may only point down it: to a
// strictly lower level.
//
// Levels 0 and 1 are pure cores, 2 to 6 shells with goroutines and I/O, 7 the
// two roots that wire, 8 the command and the tests of several nodes. A package
// that is missing here has no place yet: give it a row and its reason.
func Layout() []Row {
	return []Row{
		{Level: 0, Path: "partition", Job: "name a task queue and its partitions", StandardOnly: true},
		{Level: 0, Path: "ring", Job: "immutable consistent-hash ring: members in, owners out"},
		{Level: 0, Path: "dynamicconfig", Job: "typed settings, constraints, precedence, registry, generated page", Beside: map[string]string{
			"partition": "constraints name task queues, and a setting is read for one",
		}},
		{Level: 0, Path: "matching/matchingpb", Job: "generated code of the data service"},
		{Level: 0, Path: "ring/membershippb", Job: "generated code of the membership service"},
		{Level: 0, Path: "matching/task", Job: "a task, its grant and token, typed errors", Beside: map[string]string{
			"partition": "a token and an error name the partition that they speak of",
		}},
		{Level: 0, Path: "matching/row", Job: "rows and one mutation of a partition: values and their codec", Beside: map[string]string{
			"partition":     "a mutation names its partition",
			"matching/task": "a row holds a task and its grant",
		}},

		{Level: 1, Path: "ring/route", Job: "partition, ring, batch size and now give a node"},
		{Level: 1, Path: "matching/match", Job: "which waiting task meets which waiting poll, now"},
		{Level: 1, Path: "matching/ledger", Job: "task ids of one partition: loaded, leased, done; levels per priority"},
		{Level: 1, Path: "matching/limit", Job: "rate limits over an explicit now"},
		{Level: 1, Path: "matching/scale", Job: "read and write counts, drain, scaler policies"},
		{Level: 1, Path: "client/balance", Job: "pick a partition to write to or read from"},
		{Level: 1, Path: "client/choose", Job: "pick a node from weighted nodes"},
		{Level: 1, Path: "client/retry", Job: "an error and an attempt give: stop, wait, re-route, re-count"},
		{Level: 1, Path: "ring/load", Job: "load figures, estimates between reports, scores"},

		{Level: 2, Path: "matching/wire", Job: "domain to proto and back, the one error table, headers and trailers"},
		{Level: 2, Path: "matching/store", Job: "the storage interface and its laws"},
		{Level: 2, Path: "ring/membership", Job: "versioned views, atomic interests, batch marks, subscriptions"},
		{Level: 2, Path: "dynamicconfig/live", Job: "sources, and subscriptions that fire at the flip"},

		{Level: 3, Path: "matching/store/memory", Job: "the store in memory, for tests"},
		{Level: 3, Path: "matching/store/storetest", Job: "the conformance suite of every store"},
		{Level: 3, Path: "matching/store/pebble", Job: "the embedded durable store"},
		{Level: 3, Path: "matching/store/postgres", Job: "the shared durable store"},
		{Level: 3, Path: "matching/store/postgres/pgtest", Job: "a real PostgreSQL server for tests"},
		{Level: 3, Path: "matching/commit", Job: "the commit lanes of a node"},
		{Level: 3, Path: "ring/gossip", Job: "views from gossip"},
		{Level: 3, Path: "ring/static", Job: "views from a fixed list"},
		{Level: 3, Path: "ring/watch", Job: "views from a stream"},
		{Level: 3, Path: "dynamicconfig/file", Job: "watch a YAML file, feed snapshots"},
		{Level: 3, Path: "matching/backlog", Job: "durable backlog of one partition: epoch, read-ahead, levels"},
		{Level: 3, Path: "matching/forward", Job: "child to parent under a budget"},

		{Level: 4, Path: "matching/queue", Job: "one loaded partition"},
		{Level: 4, Path: "client/conn", Job: "connections by address, closed some time after a node left"},

		{Level: 5, Path: "matching/engine", Job: "the loaded partitions of a node: load, unload, ownership, timer wheel"},
		{Level: 6, Path: "matching/server", Job: "gRPC methods: validate, call the engine, answer"},

		{Level: 7, Path: "matching", Job: "the server: Config, New, Start, Stop, fx Module", Root: true},
		{Level: 7, Path: "client", Job: "the routing client: batching, worker, session, frontend handler", Root: true},

		{Level: 8, Path: "cmd/taskring", Job: "the command: subcommands, read top to bottom", Root: true},
		{Level: 8, Path: "cmd/taskring/...", Job: "parts of the command"},
		{Level: 8, Path: "docs/examples/...", Job: "whole programs to begin with"},
		{Level: 8, Path: "tests/...", Job: "many nodes, simulation, faults, benchmarks, house rules"},
	}
}

// highestPureLevel is the last level whose packages take values in and give
// values out: no clock, goroutine, logger, context or global random source.
const highestPureLevel = 1

// Fence keeps one part of the tree out of another, whatever the levels say.
type Fence struct {
	// From and Into are directories; each stands for all packages below it too.
	From, Into string
	// Except are the packages of Into that From may import all the same.
	Except []string
	Reason string
}

// Fences returns the walls between the server and the client.
func Fences() []Fence {
	return []Fence{
		{
			From: "matching", Into: "client",
			Reason: "the command hands the client to the server; the server never knows it",
		},
		{
			From: "client", Into: "matching",
			Except: []string{"matching/matchingpb", "matching/task", "matching/wire"},
			Reason: "who embeds the client must not carry the server along",
		},
	}
}

// Library says which packages may import a module or one package of it.
type Library struct {
	// Path is an import path; it stands for everything below it too. The
	// longest path that fits an import decides.
	Path string
	// Only are the packages that may, or directories when they end in "/...".
	Only   []string
	Reason string
}

// Libraries returns the libraries that only some packages may import.
func Libraries() []Library {
	return []Library{
		{
			Path: "google.golang.org/grpc",
			Only: []string{
				"matching/wire", "matching/server", "matching", "client", "client/conn", "ring/watch", "cmd/...", "tests/...",
			},
			Reason: "the domain does not know its transport",
		},
		{
			Path: "google.golang.org/grpc/codes",
			Only: []string{
				"matching/wire", "matching/server", "matching", "client", "client/conn", "client/retry", "ring/watch", "cmd/...", "tests/...",
			},
			Reason: "codes are given and read in one error table",
		},
		{Path: "github.com/hashicorp/memberlist", Only: []string{"ring/gossip"}, Reason: "membership has other sources too"},
		{Path: "go.uber.org/fx", Only: []string{"matching", "client", "cmd/..."}, Reason: "constructors below the roots read top to bottom"},
		{Path: "github.com/cockroachdb/pebble", Only: []string{"matching/store/pebble", "tests/..."}, Reason: "the store is an interface"},
		{Path: "github.com/jackc/pgx", Only: []string{"matching/store/postgres", "matching/store/postgres/pgtest", "tests/..."}, Reason: "the store is an interface"},
		{Path: "github.com/buraksezer/consistent", Only: []string{"ring", "tests/..."}, Reason: "there is one ring"},
		{Path: "github.com/fsnotify/fsnotify", Only: []string{"dynamicconfig/file"}, Reason: "settings have other sources too"},
		{Path: "github.com/spf13/cobra", Only: []string{"cmd/..."}, Reason: "flags belong to the command"},
	}
}

// fileCallers may call the file functions of os and path/filepath.
var fileCallers = []string{
	"matching/store/pebble", "matching/store/postgres", "matching/store/postgres/pgtest", "dynamicconfig/file", "cmd/...", "tests/...",
}

// rowOf returns the row of a package: its own, else the one of the nearest
// "/..." above it.
func rowOf(pkgPath string) (Row, bool) {
	var best Row
	found := false
	for _, row := range Layout() {
		if row.Path == pkgPath {
			return row, true
		}
		if below, wild := strings.CutSuffix(row.Path, "/..."); wild && within(pkgPath, below) && len(row.Path) > len(best.Path) {
			best, found = row, true
		}
	}
	return best, found
}

// within reports whether a package is dir or lies below it.
func within(pkgPath, dir string) bool {
	return pkgPath == dir || strings.HasPrefix(pkgPath, dir+"/")
}

// listed reports whether a package is one of the listed ones, in which an entry
// that ends in "/..." stands for a directory and all below it.
func listed(pkgPath string, list []string) bool {
	for _, entry := range list {
		if below, wild := strings.CutSuffix(entry, "/..."); (wild && within(pkgPath, below)) || entry == pkgPath {
			return true
		}
	}
	return false
}
