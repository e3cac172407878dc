package matching

import (
	_ "github.com/taskring/taskring/client/retry" // want "matching may not import client/retry .the command hands the client"
	_ "github.com/taskring/taskring/ring"
)
