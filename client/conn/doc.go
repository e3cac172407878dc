// Package conn keeps gRPC connections by address. One is made when it is first
// used, serves every call to its address, and is closed some time after it was
// used last, unless its node is still a member.
//
//	             first call                 unused for Linger, Keep says no
//	(nothing) ──────────────> connected ──────────────────────────> closed
//	                              ^                                    │
//	                              └────────────── next call ───────────┘
//
// [Pool.Get] gives a [Conn], which is a grpc.ClientConnInterface that may be kept
// for as long as anyone likes: it holds no connection by itself, and finds or
// makes one at each call. So a connection can be closed under it without a call
// ever failing for that.
//
// # Invariants
//
//	C1  at most one connection an address, or [Options].PerAddress
//	C2  no connection is closed while a call or stream uses it, but by Close
//	C3  after Close there is no connection and no goroutine
//
// Connections ping an idle peer, so that one that is gone without a word is
// found; how often must suit what the server enforces, see [Options].
package conn
