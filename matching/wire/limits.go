package wire

import (
	"cmp"
	"time"
)

// Limits bounds what a request may carry. The zero value of a field takes its
// default; each refusal names the setting.
type Limits struct {
	PayloadBytes     int           // of one task
	HeaderBytes      int           // keys and values of one task together
	FairnessKeyBytes int           // of one task
	RequestIDBytes   int           // of one task
	IdentityBytes    int           // of identity, worker instance key and poll id each
	BatchItems       int           // tasks or grants of one batch
	PollTasks        int           // tasks of one poll; more are not refused but cut
	Delay            time.Duration // of not_before, delay and retry intervals
	MinLease         time.Duration
	MaxLease         time.Duration
}

// WithDefaults returns l with its zero fields filled.
func (l Limits) WithDefaults() Limits {
	d := LimitsIn(nil)
	l.PayloadBytes = cmp.Or(l.PayloadBytes, d.PayloadBytes)
	l.HeaderBytes = cmp.Or(l.HeaderBytes, d.HeaderBytes)
	l.FairnessKeyBytes = cmp.Or(l.FairnessKeyBytes, d.FairnessKeyBytes)
	l.RequestIDBytes = cmp.Or(l.RequestIDBytes, d.RequestIDBytes)
	l.IdentityBytes = cmp.Or(l.IdentityBytes, d.IdentityBytes)
	l.BatchItems = cmp.Or(l.BatchItems, d.BatchItems)
	l.PollTasks = cmp.Or(l.PollTasks, d.PollTasks)
	l.Delay = cmp.Or(l.Delay, d.Delay)
	l.MinLease = cmp.Or(l.MinLease, d.MinLease)
	l.MaxLease = cmp.Or(l.MaxLease, d.MaxLease)
	return l
}
