package sim

import _ "github.com/taskring/taskring/tests/cluster"
