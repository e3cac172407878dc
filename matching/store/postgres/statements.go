package postgres

import (
	"strings"
	"sync"
)

// statements are the texts of all statements but commits, for one schema.
type statements struct {
	schema                                           string
	find, create, take                               string
	tasks, tasksInBytes, scheduled, scheduledInBytes string
	leases, dead, deadInBytes                        string
	get, requests, list, settings, putFirst, putNext string

	parts   [partCount]part
	commits struct {
		sync.Mutex
		texts map[set]string
	}
}

func newStatements(schema string) *statements {
	in := func(sql string) string { return inSchema(schema, strings.TrimSpace(sql)) }
	s := &statements{
		schema: schema,
		find:   in(findPartitions), create: in(createPartitions), take: in(takePartitions),
		tasks: in(scanTasks), tasksInBytes: in(withinBytes(scanTasks, "id", 5)),
		scheduled: in(scanScheduled), scheduledInBytes: in(withinBytes(scanScheduled, "due, id", 5)),
		leases: in(scanLeases),
		dead:   in(scanDead), deadInBytes: in(withinBytes(scanDead, "id", 3)),
		get: in(getTasks), requests: in(getRequests),
		list: in(listPartitions), settings: in(getSettings), putFirst: in(putFirstSettings), putNext: in(putNextSettings),
		parts: allParts(),
	}
	s.commits.texts = make(map[set]string)
	return s
}
