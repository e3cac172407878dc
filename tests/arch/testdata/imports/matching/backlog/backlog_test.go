package backlog_test

import (
	_ "github.com/taskring/taskring/matching/commit"
	_ "github.com/taskring/taskring/matching/engine" // want "may not import matching/engine .level 5."
)
