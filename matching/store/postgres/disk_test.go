package postgres

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
)

// TestFullDisk fills a small file system: commits are surely not stored and say
// why, and work again by themselves when there is room.
func TestFullDisk(t *testing.T) {
	s := newStore(t) // the server runs now
	dir := filepath.Join(pg.Dir(), "small")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(pg.Dir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=2m"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	}()
	owner := info.Sys().(*syscall.Stat_t)
	if err := os.Chown(dir, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
	pg.Exec(t, "CREATE TABLESPACE small LOCATION '"+dir+"'")
	ctx := context.Background()
	if _, err := s.rest.Exec(ctx, inSchema(s.o.Schema, "ALTER TABLE {s}.task SET TABLESPACE small")); err != nil {
		t.Fatal(err)
	}
	p := orders.Partition(0)
	acquire(t, s, anna, p)
	seq := uint64(0)
	var o store.Outcome
	for o.Result = store.Stored; o.Result == store.Stored && seq < 10_000; {
		seq++
		m := put(p, 1, seq)
		m.PutTasks[0].Task.Payload = []byte(strings.Repeat("x", 1900)) // below what would be compressed
		o = result(s, m)
	}
	if o.Result != store.NotStored || !errors.Is(o.Err, ErrDiskFull) {
		t.Fatalf("commit to a full disk = %v, %v", o.Result, o.Err)
	}
	page, err := s.Scan(ctx, p, row.Scan{Kind: row.Tasks, Priority: 3, Items: 10_000})
	if err != nil || len(page.Tasks) != int(seq-1) {
		t.Errorf("on the full disk are %d tasks, %v, want %d", len(page.Tasks), err, seq-1)
	}
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT, "size=20m"); err != nil {
		t.Fatal(err)
	}
	mustStore(t, s, put(p, 1, seq))
	if _, err := s.rest.Exec(ctx, inSchema(s.o.Schema, "DROP TABLE {s}.task")); err != nil {
		t.Fatal(err)
	}
	pg.Exec(t, "DROP TABLESPACE small")
}
