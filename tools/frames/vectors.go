package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// vectors writes a line for each golden vector of the packages below a directory,
// by name: a vector is the same in whatever file it lies. A block that begins with
// its name and has a line of hexadecimal digits is one.
func vectors(out io.Writer, dir string) error {
	var lines []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Base(filepath.Dir(path)) != "testdata" || filepath.Ext(path) != ".txt" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, block := range bytes.Split(text, []byte("\n\n")) {
			name, hex := field(block, "name: "), field(block, "hex:")
			if len(name) == 1 && len(hex) > 0 {
				lines = append(lines, fmt.Sprintf("vector\t%s\t%s\n", name[0], strings.Join(hex, " ")))
			}
		}
		return err
	})
	slices.Sort(lines)
	for _, line := range lines {
		if _, err := io.WriteString(out, line); err != nil {
			return err
		}
	}
	return err
}

// field returns what is in the lines that begin with a key.
func field(block []byte, key string) (values []string) {
	for line := range strings.Lines(string(block)) {
		if v, ok := strings.CutPrefix(line, key); ok {
			values = append(values, strings.TrimSpace(v))
		}
	}
	return values
}
