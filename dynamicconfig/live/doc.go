// Package live keeps the dynamic settings in force and tells who wants to know
// when a value changes.
//
//	source --Publish--> Settings --Snapshot--> whoever reads a setting at each use
//	                        \----- Subscribe -> whoever has to act on a change
//	                         \---- Cached ----> a struct made of settings, the same until they change
//
// A source is whatever calls [Settings.Publish]: package file for a file,
// [Memory] for tests and programs with a store of their own, or nothing at all,
// when the snapshot given to [New] is meant to stay.
//
// # Subscriptions
//
//	S1  A callback gets the value that it was told last, or [Subscribe] returned,
//	    and the present one, and these differ.
//	S2  After the last change each subscription hears of the value then in force;
//	    values in between that did not stay may be left out.
//	S3  Callbacks of one subscription never run at the same time, and no lock of
//	    this package is held while one runs: it may read, publish, subscribe and
//	    cancel as it likes.
//	S4  After Stop no callback of the subscription runs or will run.
//	S5  A gradual change is told of at the flip of the key that is followed. Should
//	    the machine's clock be set, then within a minute.
//
// Callbacks run on few goroutines, which exist only while there is something to
// tell: a subscription costs some memory and, during a gradual change, a timer.
// A callback that blocks takes one of them away from the others, so long work
// belongs elsewhere.
//
// Everything here may be used concurrently.
package live
