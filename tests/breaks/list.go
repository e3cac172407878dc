package breaks

// ofTheStore are mistakes in what the store calls durable and whose writes it takes.
func ofTheStore() []Break {
	return []Break{
		{
			Name:    "no fsync before the answer",
			File:    "matching/store/pebble/commit.go",
			Old:     "err = s.apply(b, ms, outcomes); err == nil {\n			s.sync(b)\n",
			New:     "err = s.apply(b, ms, outcomes); err == nil {\n			_ = b\n",
			Package: "./matching/store/pebble", Test: "Crash",
		},
		{
			Name:    "the epoch is not compared in the store",
			File:    "matching/store/pebble/commit.go",
			Old:     "case h.epoch != m.Epoch:",
			New:     "case h.epoch > m.Epoch+1000:",
			Package: "./matching/store/pebble", Test: "Conformance",
		},
		{
			Name:    "the fence of the shared store takes a weaker lock",
			File:    "matching/store/postgres/parts.go",
			Old:     "lock := \"FOR SHARE\"",
			New:     "lock := \"FOR KEY SHARE\"",
			Package: "./matching/store/postgres", Test: "FenceUnderStress",
		},
		{
			Name:    "a connection that the server ended counts as not stored",
			File:    "matching/store/postgres/errors.go",
			Old:     "pg.SeverityUnlocalized == \"ERROR\"",
			New:     "pg.SeverityUnlocalized != \"\"",
			Package: "./matching/store/postgres", Test: "ResultOf",
		},
	}
}

// ofAnswers are mistakes in when a caller is answered, and in what a refusal
// leaves behind.
func ofAnswers() []Break {
	return []Break{
		{
			Name:    "the add is answered before its commit",
			File:    "matching/ledger/life.go",
			Old:     "	switch lv := &l.levels[e.Priority.Level()]; {\n",
			New:     "	l.answerAdd(e, nil)\n	switch lv := &l.levels[e.Priority.Level()]; {\n",
			Package: "./tests/sim", Test: "TestPromises",
		},
		{
			Name:    "the completion is answered before its commit",
			File:    "matching/ledger/life.go",
			Old:     "	if e.have.kind == 0 && !e.inFlight {\n		l.elide(e)\n		l.answer(a)\n		return\n	}\n	l.await(e, a)\n",
			New:     "	if e.have.kind == 0 && !e.inFlight {\n		l.elide(e)\n	}\n	l.answer(a)\n",
			Package: "./tests/sim", Test: "TestPromises",
		},
		{
			Name:    "a task that is with the store is taken for one that never was",
			File:    "matching/ledger/life.go",
			Old:     "	if e.have.kind == 0 && !e.inFlight {\n		l.elide(e)\n		l.answer(a)\n",
			New:     "	if e.have.kind == 0 {\n		l.elide(e)\n		l.answer(a)\n",
			Package: "./tests/sim", Test: "TestPromises",
		},
		{
			Name:    "a refused add stays in memory",
			File:    "matching/ledger/commit.go",
			Old:     "		l.forget(e)\n	default:",
			New:     "	default:",
			Package: "./tests/sim", Test: "TestPromises",
		},
		{
			Name:    "a task that a worker holds is refused with the rest",
			File:    "matching/ledger/commit.go",
			Old:     "	case e.Delivery == 0 && e.adding:",
			New:     "	case e.adding:",
			Package: "./tests/sim", Test: "TestPromises",
		},
		{
			Name:    "after an unknown outcome another holder in between goes unnoticed",
			File:    "matching/ledger/commit.go",
			Old:     "	if epoch != l.epoch+1 {",
			New:     "	if epoch <= l.epoch {",
			Package: "./tests/sim", Test: "TestPromises",
		},
	}
}

// ofReading are mistakes on the way between memory and the store, on which tasks
// are lost or come back.
func ofReading() []Break {
	return []Break{
		{
			Name:    "the lease is not in the row's commit",
			File:    "matching/ledger/commit.go",
			Old:     "	if g.none() {\n		return nil\n	}\n	l.folds",
			New:     "	if len(l.folds) >= 0 {\n		return nil\n	}\n	l.folds",
			Package: "./tests/sim", Test: "TestPromises",
		},
		{
			Name:    "the reader passes ids whose commit is not settled",
			File:    "matching/ledger/window.go",
			Old:     "		return l.fresh[0].ID - 1\n",
			New:     "		return task.MakeID(l.epoch, l.seq)\n",
			Package: "./tests/sim", Test: "TestPromises",
		},
		{
			Name:    "what finished while a read ran is forgotten",
			File:    "matching/ledger/read.go",
			Old:     "		r.done[id] = struct{}{}\n",
			New:     "		_ = id\n",
			Package: "./tests/sim", Test: "TestPromises",
		},
		{
			Name:    "a scheduled task leaves memory while a read passes over it",
			File:    "matching/ledger/window.go",
			Old:     "	case e.spilled && l.read.running:\n		l.read.deferred = append(l.read.deferred, e)\n",
			New:     "",
			Package: "./tests/sim", Test: "TestPromises",
		},
		{
			Name:    "range deletes ignore what is in memory",
			File:    "matching/ledger/sweep.go",
			Old:     "		if e.Priority == p && id <= read && inTasks {",
			New:     "		if e.Priority == p && id <= read && inTasks && e.State == Leased {",
			Package: "./tests/sim", Test: "TestPromises",
		},
		{
			Name:    "leases are not loaded",
			File:    "matching/ledger/ledger.go",
			Old:     "		l.loadLease(lease)\n",
			New:     "		_ = lease\n",
			Package: "./tests/sim", Test: "TestPromises",
		},
		{
			Name:    "may_hold is not written with the first row",
			File:    "matching/ledger/commit.go",
			Old:     "		l.meta.MayHold, l.meta.Listed = true, true\n",
			New:     "		l.meta.Listed = true\n",
			Package: "./tests/sim", Test: "TestPromises",
		},
	}
}

// ofWakeUps are calls that are owed and not made.
func ofWakeUps() []Break {
	return []Break{
		{
			Name:    "a parked poll is not matched with a task that is there",
			File:    "matching/queue/core.go",
			Old:     "		if !c.matchAll(now) {",
			New:     "		if len(out.Offer) == 0 || !c.matchAll(now) {",
			Package: "./matching/queue", Test: "TestNoLostWakeUp",
		},
		{
			Name:    "the lane is not told that there is something to write",
			File:    "matching/queue/event.go",
			Old:     "	if todo.dirty {\n",
			New:     "	if todo.dirty && len(todo.effects.Answers) > 0 {\n",
			Package: "./matching/queue", Test: "TestLeaseAndDelayRunByTimers",
		},
		{
			Name:    "the lane is told again and again of what waits for a read",
			File:    "matching/ledger/commit.go",
			Old:     "func(w wait) bool { return !w.entry.lacksBody() }",
			New:     "func(wait) bool { return true }",
			Package: "./tests/sim", Test: "TestPromises",
		},
		{
			Name:    "grants to a caller who left are not released",
			File:    "matching/queue/poll.go",
			Old:     "		q.giveBack(p.Result.Grants)\n",
			New:     "",
			Package: "./matching/queue", Test: "TestCancelledPollsLeaveNoLease",
		},
		{
			Name:    "the timer is not set when the next lease runs out",
			File:    "matching/queue/event.go",
			Old:     "	if !todo.wake.IsZero() {\n",
			New:     "	if !todo.wake.IsZero() && len(todo.effects.Ended) == 0 {\n",
			Package: "./matching/queue", Test: "TestLeaseAndDelayRunByTimers",
		},
	}
}
