package partition

import (
	_ "strings"

	_ "github.com/taskring/taskring/matching/task" // want "partition .level 0. may not import matching/task .level 0.: move the code down"
)
