package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sheaf/e2e/order"
)

// A newerEmulator is QEMU of another version than the one that is installed, unpacked.
type newerEmulator struct {
	program []string // with its first arguments
	env     []string
}

// newerQEMU returns a QEMU from 8 on: the one that is installed, or the one of Debian's
// backports, which is downloaded and not installed.
func newerQEMU(t *testing.T, dir string) newerEmulator {
	t.Helper()
	out, err := exec.Command(emulator(), "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	var major int
	if _, err := fmt.Sscanf(string(out), "QEMU emulator version %d.", &major); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	if major >= 8 {
		return newerEmulator{program: []string{emulator()}}
	}
	root := filepath.Join(dir, "qemu")
	script := `
set -e
mkdir -p "$1/lists/partial" "$1/cache/archives/partial" "$1/root"
cd "$1"
. /etc/os-release
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $VERSION_CODENAME-backports main" >sources.list
apt() { apt-get -q -o Acquire::Retries=3 -o APT::Sandbox::User=root -o Dir::Etc::sourcelist="$1/sources.list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$1/lists" -o Dir::Cache="$1/cache" "$2" $3; }
apt "$1" update
apt "$1" download "qemu-system-x86 qemu-system-common qemu-system-data seabios"
for d in *.deb; do dpkg -x "$d" root; done
`
	if out, err := exec.Command("sh", "-c", script, "sh", root).CombinedOutput(); err != nil {
		t.Skipf("QEMU of Debian's backports is not to be had, and the one that is installed is %d: %v\n%s", major, err, out)
	}
	share := filepath.Join(root, "root/usr/share")
	modules, _ := filepath.Glob(filepath.Join(root, "root/usr/lib/*/qemu"))
	return newerEmulator{
		program: []string{filepath.Join(root, "root/usr/bin/qemu-system-x86_64"), "-L", filepath.Join(share, "qemu"), "-L", filepath.Join(share, "seabios")},
		env:     []string{"QEMU_MODULE_DIR=" + strings.Join(modules, ":")},
	}
}

// From version 8 on QEMU bears a NIC at a vhost-user port that has MSI-X, as it is without
// vectors=0, under emulation too; and its stream comes back to a gateway that listens.
func TestNewerQEMU(t *testing.T) {
	l := newLab(t, 2)
	q := newerQEMU(t, l.dir)
	at := seat{1, 1}
	text := strings.Replace(l.guestTables(1, 1, ""), "dial = true", "dial = false", 1)
	gateways := l.configure(tunnelOptions{ports: map[*site]string{l.clients(): text}})
	l.withoutRoot(gateways[0])
	for _, g := range gateways {
		g.start()
	}
	l.waitUp(gateways...)
	m := machine{name: "newer", nics: l.nics(at), emulator: q}
	for i := range m.nics {
		m.nics[i].msix = true
	}
	m.nics[1].dial, m.nics[1].again = false, true
	g := l.clients().gw.boot(m)
	for round := range 2 {
		if round > 0 {
			gateways[0].kill()
			gateways[0].start()
			l.waitUp(gateways...)
		}
		for _, k := range kinds {
			eventually(t, 10*time.Second, func() string {
				return missingUnless(k.name == "dgram" || l.port(gateways[0], at.port(k)).Link.Up, k.name+" is not up")
			})
			g.ask("net", at.net(k), nil)
			var p order.Pinged
			g.ask("ping", order.Ping{To: at.routers(k)[0], Count: 200, Every: 5 * time.Millisecond, Wait: 5 * time.Second}, &p)
			t.Logf("round %d: %s: %+v", round, k.name, p)
			if p.Got < 190 { // the first may get lost while neighbours look for one another
				t.Errorf("round %d: %s: %d of %d echoes", round, k.name, p.Got, p.Sent)
			}
		}
	}
	if b, err := os.ReadFile(g.console); err != nil || strings.Contains(string(b), "panic") {
		t.Errorf("%v\n%s", err, b)
	}
}
