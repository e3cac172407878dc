package ring

func six() {
	_ = 1
	_ = 2
	_ = 3
	_ = 4
}

func seven() { // want "seven has 7 lines, the limit is 6: name its steps"
	_ = 1
	_ = 2
	_ = 3
	_ = 4
	_ = 5
}
