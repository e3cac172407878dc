// Package breaks puts mistakes into the server on purpose and sees the tests
// find them.
//
// A promise is only as good as the test that would notice its loss. Each [Break]
// is one wrong line, of the kind that slips in: an answer before the commit, an
// epoch that is not compared, a wake-up that is forgotten. The long run builds a
// copy of the tree with that line and demands that the named test fails. The
// short run checks that each line is still where it was.
//
// docs/reliability.md lists promises, tests and breaks together.
package breaks

import "slices"

// Break is one deliberate mistake and the test that must find it.
type Break struct {
	Name    string // what is broken, as docs/reliability.md says it
	File    string // from the top of the module
	Old     string // what stands there, once
	New     string // what is put in its place
	Package string // of the test that must fail
	Test    string // its name
}

// All are the breaks that the tests must find.
func All() []Break {
	return slices.Concat(ofTheStore(), ofAnswers(), ofReading(), ofWakeUps())
}
