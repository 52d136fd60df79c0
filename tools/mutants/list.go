package main

import (
	"bufio"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"path"
	"regexp"
	"strings"
)

// A mutant is a small bug. In a list it is a block such as
//
//	rule: an acknowledgement waits no longer than AckWait
//	in: engine/aggregate/schedule.go Merger.wait
//	- due = min(due, s.at+c.AckWait)
//	+ due = max(due, s.at+c.AckWait)
//
// which says what holds in the code without it, where it is, what the code there
// is, and with it. Blocks are apart by an empty line; lines that begin with # are
// comments.
type mutant struct {
	line int    // of the list, from 1
	rule string // which the bug breaks
	file string // from the top of the repository
	// function is that in which the text is, with its receiver's type, such as
	// Merger.wait; empty where it is in none or in one that needs no name.
	function string
	// was and now are the text before and after; a part of a line or lines, for
	// which white space at the begin does not count.
	was, now []string
}

// String returns the package and the rule.
func (m *mutant) String() string { return path.Dir(m.file) + ": " + m.rule }

// parse reads a list.
func parse(in io.Reader) (list []mutant, err error) {
	var m mutant
	end := func() error {
		if m.line == 0 {
			return nil
		}
		if m.rule == "" || m.file == "" || len(m.was) == 0 {
			return fmt.Errorf("line %d: a mutant without a rule, a file or a text", m.line)
		}
		list = append(list, m)
		m = mutant{}
		return nil
	}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(text, "#") {
			continue
		}
		if text == "" {
			if err := end(); err != nil {
				return nil, err
			}
			continue
		}
		if m.line == 0 {
			m.line = n
		}
		key, value, _ := strings.Cut(text, " ")
		value = strings.TrimSpace(value)
		switch key {
		case "rule:":
			m.rule = value
		case "in:":
			m.file, m.function, _ = strings.Cut(value, " ")
		case "-":
			m.was = append(m.was, value)
		case "+":
			m.now = append(m.now, value)
		default:
			return nil, fmt.Errorf("line %d: %q, where rule:, in:, - or + is expected", n, key)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	return list, end()
}

// apply returns the source with the bug in it. The text has to be there once.
func (m *mutant) apply(source []byte) ([]byte, error) {
	from, to := 0, len(source)
	if m.function != "" {
		var err error
		if from, to, err = find(source, m.function); err != nil {
			return nil, err
		}
	}
	quoted := make([]string, len(m.was))
	for i, line := range m.was {
		quoted[i] = regexp.QuoteMeta(line)
	}
	at := regexp.MustCompile(strings.Join(quoted, `\n[ \t]*`)).FindAllIndex(source[from:to], 2)
	switch len(at) {
	case 0:
		return nil, errors.New("its text is not there")
	case 2:
		return nil, errors.New("its text is there more than once")
	}
	var b []byte
	b = append(b, source[:from+at[0][0]]...)
	b = append(b, strings.Join(m.now, "\n")...)
	return append(b, source[from+at[0][1]:]...), nil
}

// find returns where a function begins and ends.
func find(source []byte, name string) (from, to int, err error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, "", source, parser.SkipObjectResolution)
	if err != nil {
		return 0, 0, err
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && functionName(fn) == name {
			return files.Position(fn.Pos()).Offset, files.Position(fn.End()).Offset, nil
		}
	}
	return 0, 0, fmt.Errorf("there is no function %s", name)
}

// functionName returns the name of a function with its receiver's type.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr: // of a generic type
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}
