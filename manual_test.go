package sheaf

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/engine/aggregate"
	"sheaf/engine/wire"
	"sheaf/parsers"
	"sheaf/parsers/builtin"
)

// read returns a file of the repository.
func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// rows returns the cells of the table under a heading line, by their first one
// without its backticks.
func rows(t *testing.T, page, heading string) map[string][]string {
	t.Helper()
	_, table, ok := strings.Cut(page, heading+"\n")
	if !ok {
		t.Fatalf("no table %q", heading)
	}
	out := map[string][]string{}
	for i, line := range strings.Split(table, "\n") {
		if i == 0 { // the rule below the heading
			continue
		}
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "|") {
			break
		}
		out[strings.Trim(cells[0], "`")] = cells
	}
	return out
}

// TestManualProtocols holds the tables of protocols to what the program registers.
func TestManualProtocols(t *testing.T) {
	page := read(t, "docs", "protocols.md")
	about := rows(t, page, "| protocol | versions | over | ports | event | learned per flow | recognised by content | opaque |")
	messages := rows(t, page, "| protocol | messages |")
	reg := builtin.Registry()
	for id, name := range reg.Names() {
		if parsers.ProtocolID(id) == parsers.Opaque {
			continue
		}
		p := reg.Protocol(parsers.ProtocolID(id))
		over := "TCP"
		if p.UDP {
			over = "UDP"
		}
		ports := "none"
		for i, n := range p.Ports {
			if i == 0 {
				ports = ""
			} else {
				ports += ", "
			}
			ports += strconv.Itoa(int(n))
		}
		if row := about[name]; len(row) != 8 {
			t.Errorf("docs/protocols.md: %s has %d cells, want 8", name, len(row))
		} else if row[2] != over || row[3] != ports {
			t.Errorf("docs/protocols.md: %s is over %s on ports %s, want %s on %s", name, row[2], row[3], over, ports)
		}
		var names []string
		for _, m := range p.MessageNames {
			if m != "" {
				names = append(names, "`"+m+"`")
			}
		}
		if row := messages[name]; len(row) != 2 {
			t.Errorf("docs/protocols.md: no messages of %s", name)
		} else if diff := cmp.Diff(strings.Join(names, ", "), row[1]); diff != "" {
			t.Errorf("docs/protocols.md: messages of %s:\n%s", name, diff)
		}
		delete(about, name)
		delete(messages, name)
	}
	for name := range about {
		t.Errorf("docs/protocols.md: there is no protocol %s", name)
	}
	for name := range messages {
		t.Errorf("docs/protocols.md: messages of %s, which is no protocol", name)
	}
}

// TestManualWords holds the tables of the manual to the names that the program
// uses.
func TestManualWords(t *testing.T) {
	page := read(t, "docs", "manual.md")
	want := func(heading string, names []string) {
		t.Helper()
		var got []string
		for name := range rows(t, page, heading) {
			got = append(got, name)
		}
		slices.Sort(got)
		slices.Sort(names)
		if diff := cmp.Diff(names, got); diff != "" {
			t.Errorf("docs/manual.md: table %s:\n%s", heading, diff)
		}
	}
	var reasons, metrics []string
	for _, r := range aggregate.Reasons() {
		reasons = append(reasons, r.String())
	}
	want("| reason | |", reasons)
	parts := []string{"carrier"}
	for p := range aggregate.NumParts {
		parts = append(parts, p.String())
	}
	want("| part | what it is |", parts)
	for _, m := range regexp.MustCompile(`= metric\("(\w+)"`).FindAllStringSubmatch(read(t, "engine", "metrics.go"), -1) {
		metrics = append(metrics, "sheaf_"+m[1])
	}
	want("| metric | labels | |", metrics)
	if !strings.Contains(page, "\n## TLS inside the flow\n") {
		t.Error("docs/manual.md: nothing where status and replay point at")
	}
	for h := range aggregate.NumHits {
		if !strings.Contains(page, "`"+h.String()+"`") {
			t.Errorf("docs/manual.md does not explain %s", h)
		}
	}
}

// TestManualLimits holds the table of limits to those that gateways propose.
func TestManualLimits(t *testing.T) {
	limits := rows(t, read(t, "docs", "manual.md"), "**How much**, for each peer and lane, in each direction\n\n| | |")
	l := wire.DefaultLimits
	for name, want := range map[string]string{
		"flows remembered at once":             thousands(l.Flows) + ";",
		"kinds of messages remembered at once": thousands(l.Templates),
		"their bodies":                         thousands(l.Bodies>>20) + " MiB;",
		"packets in a frame":                   thousands(l.Packets) + ", of " + thousands(l.Bytes>>20) + " MiB",
		"a packet":                             thousands(wire.MaxPacket) + " bytes",
	} {
		if row := limits[name]; len(row) != 2 || !strings.HasPrefix(row[1], want) {
			t.Errorf("docs/manual.md: %s: %q, want %s", name, row, want)
		}
	}
}

// thousands writes a number with its thousands apart.
func thousands(n uint32) string {
	s := strconv.Itoa(int(n))
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// TestManualCode holds the code on the page about protocols to the files: the
// blocks of feed.go are all of it, those of others a part.
func TestManualCode(t *testing.T) {
	page := read(t, "docs", "add-a-protocol.md")
	blocks := map[string][]string{}
	for _, m := range regexp.MustCompile("(?s)```go (\\S*)\n(.*?)```\n").FindAllStringSubmatch(page, -1) {
		blocks[m[1]] = append(blocks[m[1]], m[2])
	}
	if strings.Count(page, "```") != 2*(len(blocks["feed.go"])+len(blocks["feed_test.go"])) {
		t.Error("docs/add-a-protocol.md: a block of code says no file")
	}
	if diff := cmp.Diff(read(t, "examples", "feed", "feed.go"), strings.Join(blocks["feed.go"], "\n")); diff != "" {
		t.Errorf("docs/add-a-protocol.md does not show examples/feed/feed.go:\n%s", diff)
	}
	for _, b := range blocks["feed_test.go"] {
		if !strings.Contains(read(t, "examples", "feed", "feed_test.go"), b) {
			t.Errorf("docs/add-a-protocol.md: not in examples/feed/feed_test.go:\n%s", b)
		}
	}
}

// TestManualLinks holds that what the pages point at is there.
func TestManualLinks(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join("docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	notInAnchor := regexp.MustCompile(`[^a-z0-9 -]`)
	code := regexp.MustCompile("(?s)```.*?```\n")
	for _, path := range append(pages, "README.md") {
		for _, m := range regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`).FindAllStringSubmatch(code.ReplaceAllString(read(t, path), ""), -1) {
			target := path
			if m[1] != "" {
				target = filepath.Join(filepath.Dir(path), m[1])
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if m[2] == "" {
				continue
			}
			found := false
			for line := range strings.Lines(read(t, target)) {
				title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
				found = found || ok && strings.HasPrefix(line, "#") &&
					"#"+strings.ReplaceAll(notInAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), ""), " ", "-") == m[2]
			}
			if !found {
				t.Errorf("%s: %s has no heading for %s", path, target, m[2])
			}
		}
	}
}
