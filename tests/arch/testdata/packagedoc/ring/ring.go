package ring // want "package ring has no package comment"
