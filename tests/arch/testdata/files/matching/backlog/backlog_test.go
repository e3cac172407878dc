package backlog

import "os"

var script, _ = os.ReadFile("testdata/script")
