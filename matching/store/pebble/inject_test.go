package pebble

import (
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// injected is a file system that calls a function before each operation. Unlike
// errorfs alone it also does so on files that are used again, as logs are.
type injected struct {
	*errorfs.FS
	before errorfs.InjectorFunc
}

func inject(fs vfs.FS, before func(errorfs.Op) error) injected {
	return injected{errorfs.Wrap(fs, errorfs.InjectorFunc(before)), before}
}

// ReuseForWrite makes an old file a new one.
func (i injected) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := i.FS.ReuseForWrite(oldname, newname, category)
	if err != nil {
		return nil, err
	}
	return errorfs.WrapFile(f, errorfs.InjectorFunc(func(op errorfs.Op) error {
		op.Path = newname
		return i.before(op)
	})), nil
}
