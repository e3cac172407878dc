package conn

import (
	_ "github.com/taskring/taskring/matching/limit" // want "client/conn may not import matching/limit .who embeds the client"
	_ "github.com/taskring/taskring/matching/matchingpb"
	_ "github.com/taskring/taskring/matching/task"
	_ "github.com/taskring/taskring/matching/wire"
)
