package queue

func three(rows [][]int) {
	for _, row := range rows {
		for _, cell := range row {
			if cell > 0 {
				return
			} else if cell < 0 {
				continue
			}
			func() {
				if cell == 0 {
					return
				}
			}()
		}
	}
}

func four(rows [][]int) {
	for _, row := range rows {
		for _, cell := range row {
			switch cell {
			case 0:
				if len(row) > 1 { // want "four nests 4 control statements, the limit is 3: return early"
					return
				}
			}
		}
	}
}

// excused walks a cube.
//
//arch:allow nesting the three dimensions are the point
func excused(cube [][][]int) {
	for _, plane := range cube {
		for _, row := range plane {
			for _, cell := range row {
				if cell > 0 {
					return
				}
			}
		}
	}
}

//arch:allow nesting
func unreasoned(cube [][][]int) {
	for _, plane := range cube {
		for _, row := range plane {
			for _, cell := range row {
				if cell > 0 { // want "unreasoned nests 4 control statements"
					return
				}
			}
		}
	}
}
