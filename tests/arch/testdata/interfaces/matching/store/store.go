package store

type reader interface {
	a()
	b()
	c()
}

type writer interface {
	reader
	d()
	e()
	f()
	g()
}

type wide interface { // want "interface wide has 8 methods, the limit is 7: let each user declare"
	writer
	h()
}
