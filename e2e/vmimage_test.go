package e2e

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pierrec/lz4/v4"
)

// An image is what virtual machines boot: paths of files, made once for all tests.
type image struct {
	kernel    string
	initramfs string // with the guest program as its init
	broker    string // that of a guest that runs mosquitto
}

var images struct {
	once sync.Once
	dir  string
	image
	err error
}

// guestModules are what a guest's kernel loads, in this order: each needs those before it.
// All is in the kernel of linux-image-cloud-amd64 but the devices of a hypervisor.
var guestModules = []string{
	"virtio_ring", "virtio", "virtio_pci_modern_dev", "virtio_pci_legacy_dev", "virtio_pci",
	"failover", "net_failover", "virtio_net",
	"vsock", "vmw_vsock_virtio_transport_common", "vmw_vsock_virtio_transport",
}

// guestImage returns what guests boot, and makes it where no test has done so: Debian's
// kernel for virtual machines, which is downloaded and not installed, and its modules
// and the guest program in an initramfs.
func guestImage(t *testing.T) image {
	t.Helper()
	images.once.Do(func() {
		if images.dir, images.err = os.MkdirTemp("", namespaces+"image"); images.err == nil {
			images.image, images.err = makeImage(images.dir)
		}
	})
	if images.err != nil {
		t.Fatalf("what guests boot: %v", images.err)
	}
	return images.image
}

func makeImage(dir string) (i image, err error) {
	files, err := kernelPackage(dir)
	if err != nil {
		return i, err
	}
	program := filepath.Join(dir, "guest")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "sheaf/e2e/guest")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return i, fmt.Errorf("go build: %w\n%s", err, out)
	}
	i = image{kernel: filepath.Join(dir, "kernel"), initramfs: filepath.Join(dir, "initramfs"), broker: filepath.Join(dir, "broker")}
	if err := os.WriteFile(i.kernel, unpackedKernel(files["vmlinuz"]), 0o644); err != nil {
		return i, err
	}
	init, err := os.ReadFile(program)
	if err != nil {
		return i, err
	}
	a := &archive{}
	a.folders("dev", "proc", "sys", "tmp", "modules")
	a.file("init", 0o755, init)
	for n, name := range guestModules {
		b, ok := files[name+".ko"]
		if !ok {
			return i, fmt.Errorf("the kernel's package has no module %s", name)
		}
		a.file(fmt.Sprintf("modules/%02d-%s.ko", n, name), 0o644, b)
	}
	common := a.end()
	if err := os.WriteFile(i.initramfs, common, 0o644); err != nil {
		return i, err
	}
	broker, err := brokerArchive()
	if err != nil {
		return i, err
	}
	return i, os.WriteFile(i.broker, append(common, broker...), 0o644) // the kernel takes several, one behind the other
}

// kernelPackage downloads the package that linux-image-cloud-amd64 depends on, and returns
// its kernel, as vmlinuz, and the guests' modules, by the names of their files.
func kernelPackage(dir string) (map[string][]byte, error) {
	out, err := exec.Command("apt-cache", "depends", "--important", "linux-image-cloud-amd64").Output()
	if err != nil {
		return nil, fmt.Errorf("apt-cache: %w", err)
	}
	_, name, found := strings.Cut(string(out), "Depends: ")
	if !found {
		return nil, errors.New("no linux-image-cloud-amd64 is known to apt: apt-get update")
	}
	name, _, _ = strings.Cut(name, "\n")
	get := exec.Command("apt-get", "-q", "-o", "Acquire::Retries=3", "-o", "APT::Sandbox::User=root", "download", name)
	get.Dir = dir
	if out, err := get.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("apt-get download %s: %w\n%s", name, err, out)
	}
	packages, err := filepath.Glob(filepath.Join(dir, "linux-image-*.deb"))
	if err != nil || len(packages) != 1 {
		return nil, fmt.Errorf("apt-get download %s: %q, %v", name, packages, err)
	}
	defer os.Remove(packages[0])
	return packageFiles(packages[0])
}

// packageFiles reads a kernel's package.
func packageFiles(deb string) (map[string][]byte, error) {
	unpack := exec.Command("dpkg", "--fsys-tarfile", deb)
	var faults bytes.Buffer
	unpack.Stderr = &faults
	out, err := unpack.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := unpack.Start(); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	r := tar.NewReader(out)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w: %s", deb, err, faults.Bytes()), unpack.Wait())
		}
		name := path.Base(h.Name)
		if strings.HasPrefix(name, "vmlinuz-") {
			name = "vmlinuz"
		} else if module, ok := strings.CutSuffix(name, ".ko"); !ok || !slices.Contains(guestModules, module) {
			continue
		}
		if files[name], err = io.ReadAll(r); err != nil {
			return nil, errors.Join(err, unpack.Wait())
		}
	}
	_, _ = io.Copy(io.Discard, out) // padding
	return files, unpack.Wait()
}

// unpackedKernel returns the ELF file inside a compressed kernel, which QEMU boots as well
// (PVH): under emulation that takes half the processor time, since none is spent on
// decompression. A kernel that is compressed otherwise than by LZ4 is returned as it is.
func unpackedKernel(b []byte) []byte {
	legacy := []byte{0x02, 0x21, 0x4c, 0x18} // of the frame, LZ4's frame format
	at := bytes.Index(b, legacy)
	if at < 0 {
		return b
	}
	kernel, _ := io.ReadAll(lz4.NewReader(bytes.NewReader(b[at:]))) // an error at its end, where other data begin
	if !bytes.HasPrefix(kernel, []byte("\x7fELF")) {
		return b
	}
	return kernel
}

// brokerArchive returns mosquitto and the libraries that it is linked with, as the machine
// that runs the test has them.
func brokerArchive() ([]byte, error) {
	program, err := exec.LookPath("mosquitto")
	if err != nil {
		return nil, err
	}
	out, err := exec.Command("ldd", program).Output()
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w", program, err)
	}
	a := &archive{}
	a.folders("lib", "lib64", "lib/x86_64-linux-gnu", "etc")
	a.file("etc/mosquitto.conf", 0o644, []byte("listener 1883\nallow_anonymous true\npersistence false\nuser root\nmax_queued_messages 0\n"))
	a.file("etc/passwd", 0o644, []byte("root:x:0:0::/:\n"))
	from := map[string]string{"mosquitto": program}
	for _, f := range strings.Fields(string(out)) {
		if strings.HasPrefix(f, "/") { // NAME => /PATH (0xADDRESS), or /PATH of the loader
			from[strings.TrimPrefix(f, "/")] = f
		}
	}
	for name, path := range from {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		a.file(name, 0o755, b)
	}
	return a.end(), nil
}

// An archive is a cpio archive in the format that the kernel takes for an initramfs
// (early-userspace/buffer-format.rst): "newc", headers of hexadecimal digits.
type archive struct {
	b     bytes.Buffer
	inode int
}

func (a *archive) folders(names ...string) {
	for _, n := range names {
		a.add(n, 0o40755, nil)
	}
}

func (a *archive) file(name string, mode uint32, content []byte) { a.add(name, 0o100000|mode, content) }

func (a *archive) add(name string, mode uint32, content []byte) {
	a.inode++
	const owner, group, links, modified, device = 0, 0, 1, 0, 0
	fmt.Fprintf(&a.b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		a.inode, mode, owner, group, links, modified, len(content), device, device, device, device, len(name)+1, 0)
	a.b.WriteString(name + "\x00")
	a.pad()
	a.b.Write(content)
	a.pad()
}

func (a *archive) pad() { a.b.Write(make([]byte, -a.b.Len()&3)) }

func (a *archive) end() []byte {
	a.add("TRAILER!!!", 0, nil)
	return a.b.Bytes()
}

// removeImages removes what guestImage made.
func removeImages() {
	if images.dir != "" {
		os.RemoveAll(images.dir)
	}
}
