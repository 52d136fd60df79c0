package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A port is a file in the directory; a change of it is one of the port.
func TestPortsOfDirectory(t *testing.T) {
	h := startHypervisor(t, "")
	h.write(t, "m2.toml", "at = \"vhost-user:../s/m2\"\naddress = \"10.1.0.12\"\n")
	h.write(t, "README", "no port")
	h.look()
	if got := h.ports(t); got != "m1 configuration, m2 directory" || !h.has("m2") {
		t.Fatalf("ports %s, socket %v", got, h.has("m2"))
	}
	before := h.g.guests.ports.plugged["m2"].end
	h.look()
	if h.g.guests.ports.plugged["m2"].end != before {
		t.Error("a port that is the same was plugged in anew")
	}
	h.write(t, "m2.toml", "at = \"vhost-user:../s/m2b\"\naddress = \"10.1.0.12\"\n")
	h.look()
	if h.has("m2") || !h.has("m2b") {
		t.Errorf("sockets %v %v", h.has("m2"), h.has("m2b"))
	}
	if err := os.Remove(filepath.Join(h.directory, "m2.toml")); err != nil {
		t.Fatal(err)
	}
	h.look()
	if !h.has("m2b") {
		t.Error("a file that is replaced may be gone for a moment")
	}
	h.look()
	if got := h.ports(t); got != "m1 configuration" || h.has("m2b") {
		t.Errorf("ports %s, socket %v", got, h.has("m2b"))
	}
}

// The gateway looks at its directory by itself.
func TestPortsAreWatched(t *testing.T) {
	h := startHypervisor(t, "")
	h.stop()
	start(t, h.text)
	h.write(t, "m2.toml", fmt.Sprintf("at = %q\n", h.at("m2")))
	for deadline := time.Now().Add(10 * time.Second); !h.has("m2"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("no port")
		}
	}
}

// A file that is wrong is told once, in the log and for as long in the status; the port
// that was there stays as it was.
func TestPortFileMistakes(t *testing.T) {
	h := startHypervisor(t, "")
	good := fmt.Sprintf("at = %q\naddress = \"10.1.0.12\"\n", h.at("m2"))
	h.write(t, "m2.toml", good)
	h.look()
	before := h.g.guests.ports.plugged["m2"].end
	for i, tt := range []struct{ text, want string }{
		{"at = ", "m2.toml: line 1"},
		{good + "mca = \"52:54:00:00:00:02\"\n", `m2.toml: line 3: unknown key "mca"`},
		{good + "name = \"m3\"\n", "leave it away, or call the file m3.toml"},
		{strings.ReplaceAll(good, ".12", ".11"), `address 10.1.0.11 is already that of port "m1"`},
		{"# " + strings.Repeat("x", maxPortFile), "has more than 65536 bytes"},
	} {
		h.write(t, "m2.toml", tt.text)
		h.look()
		if f := h.g.Status().Guests.Faults; len(f) != 0 {
			t.Errorf("%d: a file that may be half written is told: %q", i, f)
		}
		h.look()
		h.look()
		if f := h.g.Status().Guests.Faults; len(f) != 1 || !strings.Contains(f[0], tt.want) {
			t.Errorf("%d: faults %q, expected %q", i, f, tt.want)
		}
		if n := h.log.count("is not as its file says"); n != i+1 {
			t.Errorf("%d: logged %d times", i, n)
		}
		if h.g.guests.ports.plugged["m2"].end != before {
			t.Errorf("%d: the port that was there did not stay", i)
		}
	}
	h.write(t, "m2.toml", good)
	h.look()
	if f := h.g.Status().Guests.Faults; len(f) != 0 || h.log.count("is in order now") != 1 {
		t.Errorf("faults %q", f)
	}
	// the name of a [[vm.port]] is taken
	h.write(t, "m1.toml", good)
	h.look()
	h.look()
	if f := h.g.Status().Guests.Faults; len(f) != 1 || !strings.Contains(f[0], `port "m1" is there already, of the configuration`) {
		t.Errorf("faults %q", f)
	}
	// a directory that cannot be read keeps its ports
	if err := os.RemoveAll(h.directory); err != nil {
		t.Fatal(err)
	}
	h.look()
	h.look()
	if f := h.g.Status().Guests.Faults; !h.has("m2") || len(f) == 0 || !strings.Contains(f[0], "no such file") || h.log.count("cannot be read, those that are there stay") != 1 {
		t.Errorf("faults %q", f)
	}
}
