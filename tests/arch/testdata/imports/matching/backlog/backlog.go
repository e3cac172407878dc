package backlog

import (
	_ "github.com/taskring/taskring/matching/commit" // want "matching/backlog .level 3. may not import matching/commit .level 3."
	_ "github.com/taskring/taskring/matching/queue"  // want "matching/backlog .level 3. may not import matching/queue .level 4."
	_ "github.com/taskring/taskring/matching/task"
	_ "github.com/taskring/taskring/tests/cluster" // want "may not import tests/cluster .level 8."
)
