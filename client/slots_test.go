package client

import (
	"sync"
	"testing"
	"testing/synctest"
)

// line is pollers that stand in line, in this order: h is a hot one, c a cold
// one.
func takeInLine(t *testing.T, s *slots, line string) []share {
	t.Helper()
	shares := make([]share, len(line))
	var wg sync.WaitGroup
	for i, kind := range line {
		wg.Go(func() { shares[i], _ = s.take(kind == 'h', 100) })
		synctest.Wait()
	}
	s.mu.Lock()
	s.mu.free = s.mu.held
	s.mu.held = 0
	s.callLocked()
	s.mu.Unlock()
	wg.Wait()
	return shares
}

func TestShares(t *testing.T) {
	for _, tc := range []struct {
		free int
		line string
		want []int
	}{
		{8, "c", []int{8}},
		{8, "ccc", []int{3, 3, 2}},
		{8, "hcc", []int{6, 1, 1}},
		{8, "chc", []int{1, 6, 1}},
		{8, "hh", []int{4, 4}},
		{4, "hchc", []int{1, 1, 1, 1}},
		{4, "cccc", []int{1, 1, 1, 1}},
		{200, "h", []int{100}}, // a node gives no more
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSlots(0)
			s.mu.held = tc.free // freed together, once all stand in line
			for i, sh := range takeInLine(t, s, tc.line) {
				if sh.n != tc.want[i] {
					t.Errorf("%d free, %s waits: number %d takes %d, want %d", tc.free, tc.line, i, sh.n, tc.want[i])
				}
			}
		})
	}
}

// TestSlotsComeBack: whatever polls bring, in the end all slots are free.
func TestSlotsComeBack(t *testing.T) {
	s := newSlots(7)
	var wg sync.WaitGroup
	for g := range 5 {
		wg.Go(func() {
			for i := range 500 {
				sh, ok := s.take(i%2 == 0, 100)
				if !ok || sh.n < 1 || sh.n > 7 {
					t.Errorf("took %+v, %v", sh, ok)
					return
				}
				used := (i + g) % (sh.n + 1)
				s.polled(sh.n, used)
				for range used {
					s.handled()
				}
			}
		})
	}
	wg.Wait()
	if s.mu.free != 7 || s.mu.held != 0 || s.mu.hot != 0 || len(s.mu.waiting) != 0 {
		t.Errorf("at the end %+v", &s.mu)
	}
}

func TestClosedSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(0)
		ended := make(chan bool, 3)
		for range 3 {
			go func() {
				_, ok := s.take(true, 1)
				ended <- ok
			}()
		}
		synctest.Wait()
		s.close()
		s.close()
		for range 3 {
			if <-ended {
				t.Error("took slots that are closed")
			}
		}
		if _, ok := s.take(false, 1); ok {
			t.Error("took slots that were closed before")
		}
	})
}
