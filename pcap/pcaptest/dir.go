// Package pcaptest says where the captures are that tests read: those of the
// repository, which every test has, and those of other projects and of real
// brokers, which are not in it and lie beside it on some machines.
package pcaptest

import (
	"os"
	"path/filepath"
	"testing"
)

// beside is where the captures of others are if CAPTURES names no other folder,
// seen from the top of the repository.
const beside = "../shared/captures"

// Others returns the path of the folder of captures that are not in the
// repository: CAPTURES in the environment, absolute or from the top of the
// repository, or ../shared/captures. It skips the test where there is none.
func Others(t testing.TB) string {
	t.Helper()
	path, missing := others(top(t), os.Getenv("CAPTURES"))
	if missing != "" {
		t.Skip(missing)
	}
	return path
}

// others returns the path of the folder with that name, or says that there is
// none.
func others(top, name string) (path, missing string) {
	if name == "" {
		name = beside
	}
	path = name
	if !filepath.IsAbs(path) {
		path = filepath.Join(top, path)
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return "", "no captures of other projects at " + name + ": CAPTURES=folder names another place"
	}
	return path, ""
}

// Own returns the path of testdata, where the captures are that tests always have.
func Own(t testing.TB) string {
	t.Helper()
	return filepath.Join(top(t), "testdata")
}

// top returns the path of the repository's top.
func top(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod in any folder above")
		}
		dir = filepath.Dir(dir)
	}
}

// Recorded returns the paths of the recorded captures in testdata.
func Recorded(t testing.TB) []string {
	t.Helper()
	dir := filepath.Join(Own(t), "recorded")
	files, err := filepath.Glob(filepath.Join(dir, "*.pcap*.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures in %s: %v", dir, err)
	}
	return files
}
