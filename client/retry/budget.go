package retry

import "sync/atomic"

// Budget bounds how many calls are made again because they failed at a node, as a
// share of the calls that are made: a node that is overloaded is not called even
// more for that. It starts full, so that a few calls are retried as the table
// says, and the zero value is a full one. Use by any number of goroutines.
//
//	each call       + ratio, up to full (100 retries)
//	each retry      - 1, refused below that
type Budget struct{ spent atomic.Int64 } // in thousandths

const (
	// fullBudget is how many retries are saved up at most.
	fullBudget = 100
	thousandth = 1000
)

// Deposit counts a call, which allows that many retries; a negative number, or
// none, allows nothing.
func (b *Budget) Deposit(ratio float64) {
	spent := b.spent.Load()
	if ratio <= 0 || spent == 0 {
		return
	}
	// A deposit that is lost to another one at the same moment does no harm.
	b.spent.CompareAndSwap(spent, max(0, spent-int64(ratio*thousandth)))
}

// Withdraw reports whether a call may be made again, and counts it if so.
func (b *Budget) Withdraw() bool {
	for {
		spent := b.spent.Load()
		if spent+thousandth > fullBudget*thousandth {
			return false
		}
		if b.spent.CompareAndSwap(spent, spent+thousandth) {
			return true
		}
	}
}

// Left returns how many retries are left.
func (b *Budget) Left() float64 {
	return fullBudget - float64(b.spent.Load())/thousandth
}
