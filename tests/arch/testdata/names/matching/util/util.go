package util // want "package name util says nothing: name it after its single job"
