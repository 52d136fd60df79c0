package model

import (
	"os/exec"
	"strings"
	"testing"
)

// The codec imports the standard library only.
func TestDependencies(t *testing.T) {
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skipf("needs the go command: %v", err)
	}
	out, err := exec.Command(path, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, dep := range strings.Fields(string(out)) {
		if dep != "sheaf/engine/aggregate/model" {
			t.Errorf("imports %s", dep)
		}
	}
}
