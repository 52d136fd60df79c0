package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A verdict is what became of a mutant.
type verdict struct {
	by    string // the test that failed, or what else ended the tests; empty if nothing did
	took  time.Duration
	fault error // why it could not be tested, for which the list is at fault
}

const (
	// patience is for how many times as long as without a bug the tests may run:
	// the machine may be busy now and not have been then.
	patience = 5
	// leastTime is what even quick tests get.
	leastTime = 20 * time.Second
	// memory in kB is what tests may take, so that an endless loop that appends
	// ends before the machine does. Those of the core take 2 GB of addresses at most.
	memory = 4 << 20
)

// A tester runs the tests of packages with mutants in them.
type tester struct {
	dir      string // for what is made on the way
	packages map[string]*suite
	least    time.Duration // leastTime, or less in its own test
}

// A suite is what is known of the tests of a package.
type suite struct {
	took time.Duration // all of them, without a bug
	args []string      // for the test binary
}

func newTester() (*tester, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, err
	}
	return &tester{dir: dir, packages: make(map[string]*suite), least: leastTime}, nil
}

func (t *tester) close() { _ = os.RemoveAll(t.dir) }

// test puts a mutant into its package and runs the package's tests.
func (t *tester) test(m *mutant) (v verdict, err error) {
	pkg := filepath.Dir(m.file)
	s, err := t.suite(pkg)
	if err != nil {
		return v, err
	}
	source, err := os.ReadFile(m.file)
	if err == nil {
		source, err = m.apply(source)
	}
	if err != nil {
		v.fault = err
		return v, nil
	}
	overlay, err := t.overlay(m.file, source)
	if err != nil {
		return v, err
	}
	binary, err := t.build(pkg, "-overlay="+overlay)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		v.fault = errors.New("it does not compile")
		return v, nil
	}
	if err != nil {
		return v, err
	}
	start := time.Now()
	limit := max(t.least, patience*s.took)
	for _, short := range []string{"-test.short", "-test.short=false"} {
		if v.by, err = t.run(binary, pkg, append([]string{short, "-test.timeout=" + limit.String()}, s.args...)); v.by != "" || err != nil {
			break
		}
	}
	v.took = time.Since(start)
	return v, err
}

// suite returns what is known of a package's tests, having run them without a bug
// if they were not before: they have to pass.
func (t *tester) suite(pkg string) (*suite, error) {
	if s := t.packages[pkg]; s != nil {
		return s, nil
	}
	binary, err := t.build(pkg)
	if err != nil {
		return nil, err
	}
	s := &suite{}
	imports, err := exec.Command("go", "list", "-f", "{{.TestImports}}{{.XTestImports}}", "./"+pkg).Output()
	if err != nil {
		return nil, err
	}
	if bytes.Contains(imports, []byte("pgregory.net/rapid")) {
		// The same cases each time, none kept in testdata, and no time spent to
		// find a smaller one.
		s.args = []string{"-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ms"}
	}
	start := time.Now()
	by, err := t.run(binary, pkg, s.args)
	if err != nil {
		return nil, err
	}
	if by != "" {
		return nil, fmt.Errorf("the tests of %s fail without a bug: %s", pkg, by)
	}
	s.took = time.Since(start)
	t.packages[pkg] = s
	return s, nil
}

// overlay makes a file for -overlay, in which a file has another source.
func (t *tester) overlay(file string, source []byte) (string, error) {
	replaced, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	by := filepath.Join(t.dir, "mutant.go")
	if err := os.WriteFile(by, source, 0o644); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": {replaced: by}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(t.dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o644)
}

// build builds the tests of a package. An *exec.ExitError says that it does not
// compile.
func (t *tester) build(pkg string, args ...string) (binary string, err error) {
	binary = filepath.Join(t.dir, "tests")
	if err := os.RemoveAll(binary); err != nil {
		return "", err
	}
	args = append(append([]string{"test", "-c", "-o", binary}, args...), "./"+pkg)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the tests of %s: %w\n%s", pkg, err, out)
	}
	if _, err := os.Stat(binary); err != nil {
		return "", fmt.Errorf("%s has no tests", pkg)
	}
	return binary, nil
}

// run runs tests where go test would, until the first that fails, which it
// returns; or what else ended them.
func (t *tester) run(binary, pkg string, args []string) (by string, err error) {
	limited := append([]string{"-c", fmt.Sprintf(`ulimit -v %d && exec "$@"`, memory), "sh", binary, "-test.failfast"}, args...)
	cmd := exec.Command("sh", limited...)
	cmd.Dir = pkg
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err == nil || !errors.As(err, &exit) {
		return "", err
	}
	return failure(string(out)), nil
}

var (
	failed  = regexp.MustCompile(`(?m)^ *--- FAIL: (\S+)`)
	timeout = regexp.MustCompile(`(?m)^panic: test timed out`)
	broken  = regexp.MustCompile(`(?m)^(?:panic|fatal error|runtime): .*`)
)

// failure returns what ended tests, from what they said.
func failure(out string) string {
	if timeout.MatchString(out) {
		return "it hangs"
	}
	if tests := failed.FindAllStringSubmatch(out, -1); tests != nil {
		return tests[len(tests)-1][1] // the innermost one
	}
	if p := broken.FindString(out); p != "" {
		return p
	}
	return strings.TrimSpace(out[strings.LastIndexByte(strings.TrimSpace(out), '\n')+1:])
}
