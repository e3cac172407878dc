// Package wire translates between the domain's values and the messages of
// matchingpb, in both directions, and holds the one table of errors. Servers and
// clients share it, so each rule of the wire is written once.
//
//	 domain                        here                      wire
//	task.Task          <- Decoder.AddTask, AddBatch -   AddTaskRequest, AddBatch
//	                   -  EncodeOptions            ->   TaskOptions
//	Granted            -  EncodeTokens, EncodeColumns -> TaskGrant, GrantBatch
//	                   <- DecodeToken, DecodeColumns -
//	Refs               <- DecodeRefs, Refs.Encode  ->   GrantRefs
//	*task.Error        -  ToStatus, FromStatus     -    gRPC status with details
//	                   -  ItemErrorOf, ErrorOfItem -    ItemError
//	PartitionCounts    -  headers and trailers     -    "pcnt-bin"
//
// # Validation
//
// A request is read whole before it is refused: [Fields] collects every bad
// field, each with what is wrong and what would be right, and ends as one INVALID
// error. Items of a batch are refused one by one. Sizes are held to [Limits],
// whose refusals name the setting; ranges that belong to the contract (priority
// 1 to 5) name the range.
//
// # Errors
//
// The domain speaks [task.Error]. [Code] is the table's column of gRPC codes; an
// error leaves as a status with google.rpc.ErrorInfo (domain "taskring") and the
// typed detail of its reason, or as an ItemError with the same contents. What
// comes back is equal to what was sent but for the cause, which never leaves its
// process.
//
// "The server said so" and "we guess" stay apart. A status without our ErrorInfo
// was not made by a node: gRPC itself made it when a connection broke, or a
// proxy did. It becomes an error that [Guessed] knows; unless its code says that
// nothing was done, its reason is OUTCOME_UNKNOWN.
//
// # Columns, an example
//
// Three grants of partition ns/orders #2 under epoch 8, leases of 30 s, the
// second one being a second attempt of priority 1:
//
//	payloads    "a"          "b"                        "c"
//	ids         8<<40|1      8<<40|2                    8<<40|5
//	deliveries  1            2                          1
//	added_us    1000000      250                        -50      (differences)
//	details                  {1, priority 1, attempt 2}
//
// Added at 1000000, 1000250 and 1000200 microseconds; what stands in no detail
// has priority 3, attempt 1, no headers and the batch's lease duration.
//
// Everything here is pure and may be called from any number of goroutines; a
// [Fields] belongs to one.
package wire
