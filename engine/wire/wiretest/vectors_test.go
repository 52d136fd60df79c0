package wiretest

import (
	"strings"
	"testing"
)

const spec = "# Title\n\n## 2. Frames\n\ntext\n\n### 3.1 Coder\n"

func TestRead(t *testing.T) {
	all, err := read(strings.Split("# about\nname: one\nspec: 3.1\ndo: a\ndo: b: c\nkey:  v \nhex: 00ff\n\n\nname: two\nspec: 2\nhex:\n", "\n"), sections(spec))
	if err != nil || len(all) != 2 {
		t.Fatalf("%d vectors, %v", len(all), err)
	}
	v := all[0]
	if v.name != "one" || v.hex != "00ff" || v.line != 7 || all[1].line != 12 || v.Get("key") != "v" || v.Get("none") != "" {
		t.Errorf("%+v, %+v", v, all[1])
	}
	if got := strings.Join(v.All("do"), "|"); got != "a|b: c" {
		t.Errorf("do: %s", got)
	}
}

// A vector that says too little to be checked is a mistake, not one less.
func TestReadErrors(t *testing.T) {
	for _, tt := range []struct{ file, want string }{
		{"name: x\nspec: 2\nhex: 00\nno colon", "line 4: no key"},
		{"name: x\nspec: 2", "needs a name and hex"},
		{"spec: 2\nhex: 00", "needs a name and hex"},
		{"name: x\nspec: 9\nhex: 00", `no section "9"`},
		{"name: x\nhex: 00", `no section ""`},
	} {
		if _, err := read(strings.Split(tt.file, "\n"), sections(spec)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v, want %s", tt.file, err, tt.want)
		}
	}
}
