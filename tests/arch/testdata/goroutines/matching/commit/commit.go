package commit

func run() { go run() }
