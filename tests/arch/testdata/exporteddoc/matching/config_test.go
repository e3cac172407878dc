package matching

func Export() {}
