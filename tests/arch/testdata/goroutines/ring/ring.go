package ring

// Build is a bad example.
func Build(group interface{ Go(func()) }) {
	go func() {}()      // want "ring .level 0 or 1. may not start a goroutine"
	group.Go(func() {}) // want "may not start a goroutine"
	func() {}()
}
