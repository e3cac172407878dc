package main

import (
	_ "github.com/taskring/taskring/client"
	_ "github.com/taskring/taskring/cmd/taskring/table"
	_ "github.com/taskring/taskring/tests/cluster" // want "cmd/taskring .level 8. may not import tests/cluster"
)
