package queue

import (
	_ "testing"        // want "production code imports testing: move it to a _test file"
	_ "testing/fstest" // want "production code imports testing/fstest"
)
