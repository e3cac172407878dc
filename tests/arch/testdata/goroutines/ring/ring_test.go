package ring

func race() { go race() }
