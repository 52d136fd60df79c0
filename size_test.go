package sheaf

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What of the core can be read at a time.
const (
	maxFunction   = 70  // lines
	maxParameters = 5   // of a function
	maxFile       = 400 // lines
)

// A reader has each function of the core on one screen, and each file in one sitting.
func TestCoreIsReadable(t *testing.T) {
	for _, dir := range []string{"engine/aggregate", "engine/aggregate/codec", "engine/aggregate/model", "engine/aggregate/seal", "engine/wire"} {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatalf("no files in %s: %v", dir, err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			src, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(src), "\n"); n > maxFile {
				t.Errorf("%s has %d lines, more than %d", name, n, maxFile)
			}
			for _, fault := range tooLong(t, name, src) {
				t.Error(fault)
			}
		}
	}
}

// tooLong returns what is wrong with the functions of a file.
func tooLong(t *testing.T, name string, src []byte) (faults []string) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		where := fset.Position(f.Pos()).String() + ": " + f.Name.Name
		if n := fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1; n > maxFunction {
			faults = append(faults, where+" is too long")
		}
		if f.Type.Params.NumFields() > maxParameters {
			faults = append(faults, where+" has too many parameters")
		}
	}
	return faults
}

// The test above sees what it is there for.
func TestTooLong(t *testing.T) {
	long := "package p\nfunc f() {\n" + strings.Repeat("\tf()\n", maxFunction) + "}\nfunc g(a, b, c int, d, e, f int) {}\nfunc h(a, b, c, d, e int) {}\n"
	if faults := tooLong(t, "p.go", []byte(long)); len(faults) != 2 {
		t.Errorf("found %q", faults)
	}
}
