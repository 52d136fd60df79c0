package sheaf

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// layers says which packages of this module a package may depend on, directly
// or not, by the longest prefix that fits. "std" allows nothing outside the
// standard library either.
var layers = map[string][]string{
	"sheaf":                                  {},
	"sheaf/pcap":                             {},
	"sheaf/pcap/pcaptest":                    {},
	"sheaf/parsers/ip":                       {"std"},
	"sheaf/parsers":                          {"sheaf/parsers/ip"},
	"sheaf/parsers/":                         {"sheaf/parsers", "sheaf/parsers/ip"},
	"sheaf/parsers/builtin":                  {"sheaf/parsers", "sheaf/parsers/"},
	"sheaf/parsers/parsertest":               {"sheaf/parsers", "sheaf/parsers/ip", "sheaf/pcap", "sheaf/pcap/pcaptest"},
	"sheaf/engine/wire":                      {"std"},
	"sheaf/engine/wire/wiretest":             {"std"},
	"sheaf/engine/credentials":               {"std"},
	"sheaf/engine/keylog":                    {"sheaf/engine/aggregate/seal", "sheaf/parsers", "sheaf/parsers/ip", "sheaf/parsers/tls"},
	"sheaf/engine/aggregate/seal":            {"sheaf/parsers", "sheaf/parsers/ip", "sheaf/parsers/tls"},
	"sheaf/engine/aggregate/seal/sealtest":   {"sheaf/engine/aggregate/seal", "sheaf/parsers", "sheaf/parsers/ip", "sheaf/parsers/tls"},
	"sheaf/engine/aggregate":                 {"sheaf/engine/aggregate/codec", "sheaf/engine/aggregate/model", "sheaf/engine/aggregate/seal", "sheaf/parsers/tls", "sheaf/engine/wire", "sheaf/parsers", "sheaf/parsers/ip"},
	"sheaf/engine/aggregate/codec":           {"sheaf/engine/aggregate/model", "sheaf/engine/wire", "sheaf/parsers", "sheaf/parsers/ip"},
	"sheaf/engine/aggregate/codec/codectest": {"sheaf/engine/wire", "sheaf/parsers", "sheaf/parsers/ip", "sheaf/pcap"},
	"sheaf/engine/aggregate/model":           {"std"},
	"sheaf/tools/":                           {"sheaf/"},
	"sheaf/examples/":                        {"sheaf/parsers", "sheaf/parsers/ip"},
	"sheaf/tools/mkcapture":                  {"sheaf/tools/mkcapture/", "sheaf/tools/pubsub", "sheaf/pcap"},
	"sheaf/netstack":                         {"sheaf/parsers/ip"},
	"sheaf/netstack/certtest":                {"std"},
	"sheaf/netstack/link":                    {},
	"sheaf/netstack/link/linktest":           {"sheaf/netstack/link"},
	"sheaf/netstack/virtio":                  {},
	"sheaf/netstack/virtio/virtiotest":       {"sheaf/netstack/virtio"},
	"sheaf/netstack/vhostuser":               {"sheaf/netstack/link", "sheaf/netstack/virtio"},
	"sheaf/netstack/vhostuser/vhosttest":     {"sheaf/netstack/link", "sheaf/netstack/virtio", "sheaf/netstack/virtio/virtiotest", "sheaf/netstack/vhostuser"},
	"sheaf/netstack/vsock":                   {"sheaf/netstack/link", "sheaf/netstack/virtio", "sheaf/netstack/vhostuser"},
	"sheaf/netstack/firsthop":                {"sheaf/netstack", "sheaf/netstack/link", "sheaf/parsers/ip"},
	"sheaf/tunnel":                           {},
	"sheaf/e2e":                              {},
	"sheaf/e2e/guest":                        {"sheaf/e2e/order"},
	"sheaf/e2e/order":                        {"std"},
	"sheaf/engine":                           {"sheaf/engine/aggregate", "sheaf/engine/aggregate/", "sheaf/engine/credentials", "sheaf/engine/keylog", "sheaf/netstack", "sheaf/netstack/", "sheaf/tunnel", "sheaf/engine/wire", "sheaf/parsers", "sheaf/parsers/"},
}

// testOnly are the packages that only tests import.
var testOnly = []string{"sheaf/netstack/certtest", "sheaf/engine/wire/wiretest", "sheaf/parsers/parsertest", "sheaf/pcap/pcaptest", "sheaf/engine/aggregate/codec/codectest", "sheaf/engine/aggregate/seal/sealtest", "sheaf/netstack/link/linktest", "sheaf/netstack/virtio/virtiotest", "sheaf/netstack/vhostuser/vhosttest"}

// measures are the packages that measure with what else only tests import: a guest.
var measures = []string{"sheaf/tools/bench"}

// core are the packages that know no goroutine, clock, log or I/O, but for those
// that only tests import.
var core = []string{"sheaf/parsers", "sheaf/parsers/", "sheaf/engine/wire", "sheaf/engine/aggregate", "sheaf/engine/aggregate/"}

// forbidden are what the core may not import itself.
var forbidden = []string{"net", "os", "log", "log/slog", "sync", "runtime", "context", "io/fs", "os/signal", "syscall"}

func goList(t *testing.T, args ...string) []string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list %v: %v\n%s", args, err, stderr.String())
	}
	return strings.Fields(string(out))
}

func fits(path string, patterns []string) bool {
	for _, p := range patterns {
		if path == p || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}

// rule returns the longest key of layers that fits path.
func rule(path string) (string, bool) {
	best, found := "", false
	for p := range layers {
		if fits(path, []string{p}) && len(p) >= len(best) {
			best, found = p, true
		}
	}
	return best, found
}

func TestImportsPointDown(t *testing.T) {
	for _, path := range goList(t, "./...") {
		key, ok := rule(path)
		if !ok {
			t.Errorf("%s has no place in the layers: say which packages it may import", path)
			continue
		}
		allowed := layers[key]
		for _, dep := range goList(t, "-deps", path) {
			own := dep == "sheaf" || strings.HasPrefix(dep, "sheaf/")
			switch {
			case dep == path:
			case own && !fits(dep, allowed):
				t.Errorf("%s depends on %s, which is not below it", path, dep)
			case !own && fits("std", allowed) && strings.Contains(strings.SplitN(dep, "/", 2)[0], "."):
				t.Errorf("%s depends on %s, outside the standard library", path, dep)
			}
		}
	}
}

func TestNothingImportsTestHelpers(t *testing.T) {
	for _, path := range goList(t, "./...") {
		if fits(path, testOnly) || fits(path, measures) {
			continue
		}
		for _, imp := range goList(t, "-f", `{{join .Imports "\n"}}`, path) {
			if fits(imp, testOnly) {
				t.Errorf("%s imports %s", path, imp)
			}
		}
	}
}

func TestCoreIsPure(t *testing.T) {
	for _, path := range goList(t, "./...") {
		if !fits(path, core) || fits(path, testOnly) {
			continue
		}
		for _, imp := range goList(t, "-f", `{{join .Imports "\n"}}`, path) {
			if fits(imp, forbidden) {
				t.Errorf("%s imports %s", path, imp)
			}
		}
	}
}
