// Package matching is described a second time, in other words, in another file.
package matching // want "second package comment: keep the one in matching/doc.go"
