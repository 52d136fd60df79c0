package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// lookEvery is how often the directory of ports is looked at: a port takes effect in
// twice as long at most, and a thousand files cost a stat call each, some milliseconds.
const lookEvery = time.Second

// maxPortFiles bounds the files of a directory that are looked at: more ports than a
// router has.
const maxPortFiles = 1 << 12

// portFiles are the files of [vm]'s directory. A file that is written bit by bit is wrong
// at first, and one that is replaced may be gone for a moment, so both are believed when
// they are so the next time too.
type portFiles struct {
	directory string
	every     time.Duration        // from one look to the next
	files     map[string]*portFile // by the names of the files
	fault     string               // of the directory
	told      string               // of that, in the log
}

// A portFile is what is known of a file.
type portFile struct {
	seen    fileMark
	gone    bool   // the last time
	fault   string // why its port is not as it says; "" where it is
	doubted bool   // the fault is there for the second time
	told    string // which fault was logged
}

// A fileMark tells a file from what it was before.
type fileMark struct {
	modified time.Time
	size     int64
	file     fs.FileInfo // for os.SameFile
}

// is tells whether the file is as it was.
func (m *fileMark) is(info fs.FileInfo) bool {
	return m.file != nil && os.SameFile(m.file, info) && m.modified.Equal(info.ModTime()) && m.size == info.Size()
}

// newPortFiles returns the files of a directory of which nothing is known.
func newPortFiles(directory string) *portFiles {
	return &portFiles{directory: directory, every: lookEvery, files: make(map[string]*portFile)}
}

// watch looks at the directory now and then, until ctx is done.
func (p *ports) watch(ctx context.Context) {
	if p.files == nil {
		return
	}
	tick := time.NewTicker(p.files.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.lookAtFiles()
		case <-ctx.Done():
			return
		}
	}
}

// lookAtFiles makes the ports of the directory those of its files.
func (p *ports) lookAtFiles() {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.files
	if f == nil || p.closed {
		return
	}
	present, err := f.list()
	if err != nil { // and the ports stay
		f.fault = err.Error()
		if f.fault != f.told {
			p.log.Error("the directory of guests' ports cannot be read, those that are there stay", "err", err)
		}
		f.told = f.fault
		return
	}
	f.fault, f.told = "", ""
	for name, file := range f.files {
		if present[name] != nil {
			file.gone = false
			continue
		}
		if !file.gone {
			file.gone = true
			continue
		}
		delete(f.files, name)
		if old := p.plugged[strings.TrimSuffix(name, portSuffix)]; old != nil && old.from == fromDirectory {
			p.unplug(old)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if f.files[name] == nil {
			f.files[name] = &portFile{}
		}
		p.lookAtFile(f.files[name], filepath.Join(f.directory, name), present[name])
	}
}

// lookAtFile makes a port that of its file, unless the file is the same as before and was
// in order.
func (p *ports) lookAtFile(file *portFile, path string, info fs.FileInfo) {
	if file.seen.is(info) && file.fault == "" {
		return
	}
	file.seen = fileMark{info.ModTime(), info.Size(), info}
	want, err := LoadPort(path)
	if err == nil {
		if err = p.put(&want, fromDirectory); err != nil {
			err = fmt.Errorf("%s: %w", path, err)
		}
	}
	if err == nil {
		if file.told != "" {
			p.log.Info("a guest's port is in order now", "port", want.Name)
		}
		*file = portFile{seen: file.seen}
		return
	}
	text := err.Error()
	if file.doubted = text == file.fault; file.doubted && text != file.told {
		p.log.Error("a guest's port is not as its file says, what was there stays", "err", err)
		file.told = text
	}
	file.fault = text
}

// list returns the files of the directory that are ports, by their names.
func (f *portFiles) list() (map[string]fs.FileInfo, error) {
	entries, err := os.ReadDir(f.directory)
	if err != nil {
		return nil, err
	}
	all := make(map[string]fs.FileInfo)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), portSuffix) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		info, err := os.Stat(filepath.Join(f.directory, e.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone meanwhile, or a link to nothing
			continue
		case err != nil:
			return nil, err
		case !info.Mode().IsRegular():
			continue
		case len(all) == maxPortFiles:
			return nil, fmt.Errorf("%s has more than %d ports", f.directory, maxPortFiles)
		}
		all[e.Name()] = info
	}
	return all, nil
}

// forget has all files read again: what was removed by command comes back.
func (f *portFiles) forget() {
	for _, file := range f.files {
		file.seen = fileMark{}
	}
}

// faults returns what is wrong with the directory and its files. Of a file it is told once
// it is so for the second time.
func (f *portFiles) faults() []string {
	if f == nil {
		return nil
	}
	var all []string
	for _, file := range f.files {
		if file.doubted {
			all = append(all, file.fault)
		}
	}
	slices.Sort(all)
	if f.fault != "" {
		all = append([]string{f.fault}, all...)
	}
	return all
}
