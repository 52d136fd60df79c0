package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// guestTables are a [vm] with one port of each kind of NIC.
const guestTables = `[vm]
address = ["10.7.0.1/24", "fd07::1/64"]
mtu = 1400
dns = ["192.0.2.53", "[2001:db8::53]:5353"]
directory = "/etc/sheaf/ports"
[[vm.port]]
name = "meter-1"
at = "vhost-user:/run/sheaf/meter-1.sock"
dial = true
mac = "52:54:00:12:34:01"
address = ["10.7.0.11", "fd07::11"]
[[vm.port]]
name = "meter-2"
at = "stream:/run/sheaf/meter-2.sock"
[[vm.port]]
name = "meter-3"
at = "dgram:/run/sheaf/meter-3.sock"
[[vm.port]]
name = "meter-4"
at = "passt:/run/sheaf/meter-4.sock"
`

// vsockTable is a port without a NIC.
const vsockTable = `[[vm.port]]
name = "meter-5"
at = "vhost-user-vsock:/run/sheaf/meter-5.sock"
cid = 3
address = "10.7.0.15"
`

// Each mistake about guests is told by its place and by what was expected.
func TestVMMistakes(t *testing.T) {
	long := strings.Repeat("s", MaxSocketPath-len("/run/sheaf/"))
	tests := []struct {
		name, old, new string
		want           string // in the error; empty: none
	}{
		{"as it is", "[vm]", "[vm]", ""},
		{"no address", `address = ["10.7.0.1/24", "fd07::1/64"]`, "", "[vm]: address is missing: the gateway's own in the guests' network, for example 10.1.0.1/24"},
		{"address without length", `"10.7.0.1/24"`, `"10.7.0.1"`, "10.7.0.1/32 leaves no room for guests"},
		{"length 30", `"10.7.0.1/24", "fd07::1/64"]` + "\nmtu", `"10.7.0.9/30", "fd07::1/64"]` + "\nmtu", "address 10.7.0.11 is that of the network or of all in it"},
		{"length 31", `"10.7.0.1/24"`, `"10.7.0.1/31"`, "10.7.0.1/31 leaves no room"},
		{"IPv6 length 126", `"fd07::1/64"`, `"fd07::12/126"`, ""},
		{"IPv6 length 127", `"fd07::1/64"`, `"fd07::1/127"`, "fd07::1/127 leaves no room"},
		{"address of the network", `"10.7.0.1/24"`, `"10.7.0.0/24"`, "10.7.0.0/24 is that of the network or of all in it: the gateway needs one of a host, for example 10.7.0.1"},
		{"broadcast address", `"10.7.0.1/24"`, `"10.7.0.255/24"`, "is that of the network or of all in it"},
		{"loopback", `"10.7.0.1/24"`, `"127.0.0.1/8"`, "expected one of a host"},
		{"two of IPv4", `"fd07::1/64"]`, `"10.8.0.1/24"]`, "at most one of IPv4 and one of IPv6"},
		{"mtu 1279", "mtu = 1400", "mtu = 1279", "mtu = 1279 is not between 1280 and 65000"},
		{"mtu 1280", "mtu = 1400", "mtu = 1280", ""},
		{"mtu 65001", "mtu = 1400", "mtu = 65001", "mtu = 65001 is not between"},
		{"dns", `"192.0.2.53"`, `"ns.example.net"`, `"ns.example.net" is no resolver like 192.0.2.53`},
		{"one dns", `["192.0.2.53", "[2001:db8::53]:5353"]`, `"192.0.2.53:5353"`, ""},
		{"peer inside", `"10.1.0.0/16"`, `"10.7.0.128/25"`, `[[peer]] "plant-7": allowed 10.7.0.128/25 lies in the guests' network 10.7.0.0/24 of [vm]`},
		{"peer around", `"10.1.0.0/16"`, `"10.0.0.0/8"`, ""},
		{"network of the device", `"10.7.0.1/24"`, `"10.99.0.200/26"`, "[vm]: the guests' network 10.99.0.192/26 overlaps that of [tun]'s address 10.99.0.1/24"},
		{"no name", `name = "meter-2"`, "", "[[vm.port]] 2: name is missing"},
		{"name twice", `name = "meter-2"`, `name = "meter-1"`, `[[vm.port]] "meter-1": is there twice`},
		{"name with a slash", `name = "meter-2"`, `name = "a/b"`, "expected letters, digits, -, _ and . only"},
		{"name of 63", `name = "meter-2"`, `name = "` + strings.Repeat("n", 63) + `"`, ""},
		{"name of 64", `name = "meter-2"`, `name = "` + strings.Repeat("n", 64) + `"`, "expected 1 to 63 characters"},
		{"name with a dot first", `name = "meter-2"`, `name = ".m"`, "expected a letter, a digit or _ first"},
		{"name of digits", `name = "meter-2"`, `name = "17"`, "a number is a CID"},
		{"no at", `at = "stream:/run/sheaf/meter-2.sock"`, "", `"meter-2": at is missing: KIND:PATH`},
		{"kind", "stream:", "bridge:", "expected KIND:PATH, where KIND is one of vhost-user, stream, dgram, passt, vhost-user-vsock"},
		{"no path", "stream:/run/sheaf/meter-2.sock", "stream:", `the path of the socket is missing, for example "stream:/run`},
		{"path of 107", "/run/sheaf/meter-2.sock", "/run/sheaf/" + long, ""},
		{"path of 108", "/run/sheaf/meter-2.sock", "/run/sheaf/s" + long, "the path has 108 bytes, and that of a socket has room for 107"},
		{"path twice", "stream:/run/sheaf/meter-2.sock", "stream:/run/sheaf/./meter-1.sock", `the socket is already that of port "meter-1"`},
		{"dial dgram", `at = "dgram`, "dial = true\nat = \"dgram", "dial is for vhost-user, stream and vhost-user-vsock: of dgram the gateway makes the socket"},
		{"dial stream", `at = "stream`, "dial = true\nat = \"stream", ""},
		{"mac", "52:54:00:12:34:01", "52:54:00:12:34", `mac = "52:54:00:12:34": expected one of a NIC`},
		{"mac of many", "52:54:00:12:34:01", "53:54:00:12:34:01", "expected one of a NIC"},
		{"mac of nobody", "52:54:00:12:34:01", "00:00:00:00:00:00", "expected one of a NIC"},
		{"mac twice", `at = "stream`, "mac = \"52-54-00-12-34-01\"\nat = \"stream", `is already that of port "meter-1"`},
		{"address outside", `"10.7.0.11"`, `"10.8.0.11"`, "address 10.8.0.11 is in no network of [vm]: expected one in 10.7.0.0/24 or fd07::/64"},
		{"address of the gateway", `"10.7.0.11"`, `"10.7.0.1"`, "is the gateway's own"},
		{"address of all", `"10.7.0.11"`, `"10.7.0.255"`, "and of no host"},
		{"address with length", `"10.7.0.11"`, `"10.7.0.11/24"`, "expected an address without a length, for example 10.7.0.11"},
		{"two addresses of IPv4", `"10.7.0.11", "fd07::11"`, `"10.7.0.11", "10.7.0.12"`, "at most one of IPv4 and one of IPv6"},
		{"address twice", `at = "stream`, "address = \"fd07::11\"\nat = \"stream", `address fd07::11 is already that of port "meter-1"`},
		{"cid of a NIC", `at = "stream`, "cid = 3\nat = \"stream", "cid is for vhost-user-vsock, and this is stream"},
		{"unknown key", "mtu = 1400", "mtus = 1400", `unknown key "vm.mtus"`},
		{"vsock beside a device", "[[vm.port]]\nname = \"meter-2\"", vsockTable + "[[vm.port]]\nname = \"meter-2\"", "needs [[forward]] from vsock:PORT, which the guest connects to, or [terminate] to vsock:GUEST:PORT; [tun] excludes both"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := good(t) + guestTables
			if !strings.Contains(text, tt.old) {
				t.Fatalf("no %q to replace", tt.old)
			}
			_, err := ParseConfig([]byte(strings.Replace(text, tt.old, tt.new, 1)))
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, expected %q in it", err, tt.want)
			}
		})
	}
}

// A gateway may have guests alone, without a NIC only beside a stack; a vsock port's CID is
// its own.
func TestVMAlone(t *testing.T) {
	alone := strings.Replace(good(t), "[tun]\naddress = [\"10.99.0.1/24\", \"fd99::1/64\"]\n", "", 1) + guestTables
	if _, err := ParseConfig([]byte(alone)); err != nil {
		t.Error(err)
	}
	if _, err := ParseConfig([]byte(alone + vsockTable)); err == nil || !strings.Contains(err.Error(), "needs [[forward]] from vsock:PORT") {
		t.Error(err)
	}
	text := "address = \"10.99.0.1\"\n" + alone + vsockTable + "[[forward]]\nfrom = \"vsock:1883\"\nto = \"10.1.0.10:1883\"\n"
	c, err := ParseConfig([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v := c.VM
	if len(v.Ports) != 5 || v.Ports[4].Kind() != KindVsock || v.Ports[4].Path() != "/run/sheaf/meter-5.sock" || v.Ports[4].Addresses()[0] != netip.MustParseAddr("10.7.0.15") {
		t.Errorf("%+v", v.Ports)
	}
	if got := fmt.Sprint(v.DNS); got != "[192.0.2.53:53 [2001:db8::53]:5353]" {
		t.Errorf("dns %s", got)
	}
	for _, tt := range []struct{ old, new, want string }{
		{"vsock:1883", "vsock:meter-5:1883", `"vsock:meter-5:1883" names a guest: expected vsock:PORT, where guests call, or vsock:/PATH:PORT`},
		{"vsock:1883", "vsock:0", "not a usable vsock address"},
		{"vsock:1883", "vsock:/run/fc.sock:1883", ""},
		{"[[peer]]", "[terminate]\nprefixes = [\"10.8.0.0/24\"]\nmap = { \"10.8.0.1:1883\" = \"vsock:meter-5:1883\" }\n[[peer]]", ""},
		{"[[peer]]", "[terminate]\nprefixes = [\"10.8.0.0/24\"]\nmap = { \"10.8.0.1:1883\" = \"vsock:1883\" }\n[[peer]]", `"vsock:1883": expected a guest, as in vsock:GUEST:PORT`},
		{"\"10.99.0.1\"", "\"10.7.0.9\"", "address 10.7.0.9 lies in the guests' network of [vm]"},
		{"[[peer]]", "[terminate]\nprefixes = [\"10.7.0.0/25\"]\n[[peer]]", "[terminate]: prefix 10.7.0.0/25 lies in the guests' network 10.7.0.0/24 of [vm]"},
		{"[[peer]]", "[terminate]\nprefixes = [\"10.0.0.0/8\"]\n[[peer]]", ""},
		{"cid = 3\n", "", "cid = 0: a vhost-user-vsock port needs the guest's, from 3 to 4294967294"},
		{"cid = 3\n", "cid = 2\n", "cid = 2: a vhost-user-vsock port needs"},
		{"cid = 3\n", "cid = 4294967294\n", ""},
		{"cid = 3\n", "cid = 4294967295\n", "cid = 4294967295"},
		{"cid = 3\n", "cid = 3\nmac = \"52:54:00:12:34:09\"\n", "mac is for a NIC"},
		{vsockTable, vsockTable + strings.NewReplacer("meter-5", "meter-6", ".15", ".16").Replace(vsockTable), `cid = 3 is already that of port "meter-5"`},
	} {
		_, err := ParseConfig([]byte(strings.Replace(text, tt.old, tt.new, 1)))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error %v, expected %q in it", tt.new, err, tt.want)
		}
	}
}

// Paths of sockets and of the directory are relative to the file's folder.
func TestVMPaths(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "sheaf.toml")
	text := strings.NewReplacer("/etc/sheaf/ports", "ports", "/run/sheaf/meter-2", "meter-2").Replace(good(t) + guestTables)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := c.VM.Directory; got != filepath.Join(dir, "ports") {
		t.Errorf("directory %s", got)
	}
	if got := c.VM.Ports[0].At; got != "vhost-user:/run/sheaf/meter-1.sock" {
		t.Errorf("at %s", got)
	}
	if got := c.VM.Ports[1].At; got != "stream:"+filepath.Join(dir, "meter-2.sock") {
		t.Errorf("at %s", got)
	}
}
