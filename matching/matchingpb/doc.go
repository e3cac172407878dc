// Package matchingpb is the wire form of the matching service: the messages and
// the gRPC stubs of taskring.matching.v1, generated from the files under proto.
//
// A stranger starts at proto/taskring/matching/v1/service.proto, which lists
// every method by who calls it. The other files hold the messages: queue.proto
// names queues, partitions and their figures; task.proto the life of a task;
// stream.proto the two streams; admin.proto what operators and other nodes ask;
// node.proto what a node says of itself and its settings; errors.proto the one
// table of errors.
//
// # Two shapes
//
// Single calls (AddTask, PollTask, CompleteTask and so on) use plain messages
// and tokens, for any language and for lone calls. Batched calls and streams use
// columns: per batch of one partition a list of payloads, a list of ids, a list
// of deliveries; what deviates from the batch's common options or from the
// defaults stands in a list by index, and so do errors. A batch needs no token:
// partition, epoch, id and delivery name a grant.
//
// Conversion to and from the domain's own types, validation and the mapping of
// errors live in matching/wire; nothing else should need to know how a message
// spells something.
//
// # Compatibility
//
// Until the first tag v1 may change in any way. From then on buf breaking guards
// it at the level of files.
package matchingpb

//go:generate go run -C ../.. github.com/bufbuild/buf/cmd/buf@v1.75.0 lint --config .buf.yaml
//go:generate go run -C ../.. github.com/bufbuild/buf/cmd/buf@v1.75.0 generate --config .buf.yaml --template .buf.gen.yaml
