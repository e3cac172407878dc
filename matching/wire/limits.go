package wire

import (
	"cmp"
	"time"
)

// Limits bounds what a request may carry. The zero value of a field takes its
// default; each refusal names the setting.
type Limits struct {
	PayloadBytes     int           // of one task, default 1 MiB
	HeaderBytes      int           // keys and values of one task together, default 16 KiB
	FairnessKeyBytes int           // default 64
	RequestIDBytes   int           // default 256
	IdentityBytes    int           // of identity, worker instance key and poll id each, default 256
	BatchItems       int           // tasks or grants of one batch, default 10,000
	PollTasks        int           // tasks of one poll, default 1,000; more are not refused but cut
	Delay            time.Duration // of not_before, delay and retry intervals, default 365 days
	MinLease         time.Duration // default 1 s
	MaxLease         time.Duration // default 12 h
}

// The settings that the fields of [Limits] come from, for refusals.
const (
	SettingPayloadBytes     = "matching.maxPayloadBytes"
	SettingHeaderBytes      = "matching.maxHeaderBytes"
	SettingFairnessKeyBytes = "matching.maxFairnessKeyBytes"
	SettingRequestIDBytes   = "matching.maxRequestIdBytes"
	SettingIdentityBytes    = "matching.maxIdentityBytes"
	SettingBatchItems       = "matching.maxBatchItems"
	SettingPollTasks        = "matching.maxPollTasks"
	SettingDelay            = "matching.maxDelay"
	SettingMinLease         = "matching.minLeaseDuration"
	SettingMaxLease         = "matching.maxLeaseDuration"
)

// WithDefaults returns l with its zero fields filled.
func (l Limits) WithDefaults() Limits {
	l.PayloadBytes = cmp.Or(l.PayloadBytes, 1<<20)
	l.HeaderBytes = cmp.Or(l.HeaderBytes, 16<<10)
	l.FairnessKeyBytes = cmp.Or(l.FairnessKeyBytes, 64)
	l.RequestIDBytes = cmp.Or(l.RequestIDBytes, 256)
	l.IdentityBytes = cmp.Or(l.IdentityBytes, 256)
	l.BatchItems = cmp.Or(l.BatchItems, 10_000)
	l.PollTasks = cmp.Or(l.PollTasks, 1_000)
	l.Delay = cmp.Or(l.Delay, 365*24*time.Hour)
	l.MinLease = cmp.Or(l.MinLease, time.Second)
	l.MaxLease = cmp.Or(l.MaxLease, 12*time.Hour)
	return l
}
