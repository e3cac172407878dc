package task

import _ "github.com/taskring/taskring/partition"
