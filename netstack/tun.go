package netstack

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
	"golang.zx2c4.com/wireguard/tun"
)

const (
	tunDriver     = "/dev/net/tun"
	tunName       = "sheaf%d" // the kernel puts the first free number
	minMTU        = 576       // bytes; below it even DNS answers need fragments
	minMTU6       = 1280      // bytes, RFC 8200 section 5
	vnetHeader    = 10        // bytes, struct virtio_net_hdr
	queueLength   = 4096      // packets
	addrGenNone   = 1         // IN6_ADDR_GEN_MODE_NONE
	maxNameLength = unix.IFNAMSIZ - 1
)

// TUNConfig says what device to make. The zero value is a device sheaf0 (or the
// first free number) without an address.
type TUNConfig struct {
	Name      string         // at most 15 bytes; "" is sheafN
	Addresses []netip.Prefix // the device's own, with the length of their subnet
	MTU       int            // bytes, 576 (1280 with an IPv6 address) to 65535; 0 is DefaultMTU
	Fallback  uint32         // metric of routes that refuse what AddRoute's are for while those are not there, Close or no Close; 0: none
	Offload   bool           // exchange super-segments with the kernel; see the package documentation
}

// TUNStats counts since OpenTUN.
type TUNStats struct {
	Joined    uint64 // packets that Write gave to the kernel inside a super-segment
	Refused   uint64 // packets that the kernel did not take: malformed, or the device is down
	Unsplit   uint64 // reads that were dropped because Read could not make packets of them
	Truncated uint64 // super-segments of which only the first BatchSize packets were kept
}

// A TUN is a layer 3 network device. Its methods may be called at the same time.
type TUN struct {
	name      string
	mtu       int
	offload   bool
	batch     int
	addresses []netip.Prefix
	fallback  uint32
	device    tun.Device
	link      netlink.Link
	handle    *netlink.Handle   // of the network namespace of OpenTUN
	events    *nl.NetlinkSocket // there, too; read by Keep

	closing atomic.Bool
	routing sync.Mutex // guards routes and the use of handle for them
	routes  map[netip.Prefix]bool
	closed  bool

	writing sync.Mutex // guards staged and run
	staged  [][]byte   // packets to be written, behind room for the virtio header
	run     [][]byte   // the elements of staged in use, as device.Write may rearrange them

	joined, refused, unsplit, truncated atomic.Uint64
}

// OpenTUN makes the device, sets it up and gives it its addresses. The error
// wraps one of the sentinels of this package, or is an *OverlapError, where the
// reason is known; whatever was made by then is taken away again.
//
// The device and its routes belong to the network namespace of the calling
// thread.
func OpenTUN(cfg TUNConfig) (*TUN, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("TUN device: netlink: %w", err)
	}
	events, err := nl.Subscribe(unix.NETLINK_ROUTE, keepGroups...)
	if err != nil {
		handle.Close()
		return nil, fmt.Errorf("TUN device: netlink: %w", err)
	}
	t := &TUN{
		mtu:       cfg.MTU,
		offload:   cfg.Offload,
		addresses: slices.Clone(cfg.Addresses),
		fallback:  cfg.Fallback,
		handle:    handle,
		events:    events,
		routes:    make(map[netip.Prefix]bool),
	}
	if err := t.open(&cfg); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

// check fills in the defaults and refuses what cannot work.
func (cfg *TUNConfig) check() error {
	if cfg.Name == "" {
		cfg.Name = tunName
	} else if len(cfg.Name) > maxNameLength || cfg.Name == "." || cfg.Name == ".." || strings.ContainsAny(cfg.Name, "/%: \t\n\x00") {
		return fmt.Errorf("TUN device %q: %w: give at most %d letters and digits", cfg.Name, ErrName, maxNameLength)
	}
	if cfg.MTU == 0 {
		cfg.MTU = DefaultMTU
	}
	least, why := minMTU, ""
	for i, a := range cfg.Addresses {
		if !a.IsValid() || a.Addr().Is4In6() || a.Addr().Zone() != "" || a.Addr().IsUnspecified() || a.Addr().IsMulticast() || a.Addr().IsLoopback() {
			return fmt.Errorf("TUN device: address %s: %w: give a host's address and the length of its subnet, like 10.99.0.1/24", a, ErrAddress)
		}
		if slices.Contains(cfg.Addresses[:i], a) {
			return fmt.Errorf("TUN device: address %s is there twice: %w: remove one", a, ErrAddress)
		}
		if a.Addr().Is6() {
			least, why = minMTU6, ", as IPv6 asks for"
		}
	}
	if cfg.MTU < least || cfg.MTU > MaxPacket {
		return fmt.Errorf("TUN device: MTU %d: %w: give %d to %d bytes%s", cfg.MTU, ErrMTU, least, MaxPacket, why)
	}
	return nil
}

func (t *TUN) open(cfg *TUNConfig) error {
	if _, err := t.handle.LinkByName(cfg.Name); err == nil {
		return errNameInUse(cfg.Name)
	}
	if err := t.checkAddresses(cfg.Addresses); err != nil {
		return err
	}
	fd, err := openDriver(cfg.Name, cfg.Offload)
	if err != nil {
		return err
	}
	// Unmonitored: the events of the link are of no interest here, and a device
	// that is removed from outside ends the reads all the same.
	if t.device, t.name, err = tun.CreateUnmonitoredTUNFromFD(fd); err != nil {
		return fmt.Errorf("TUN device %s: %w", cfg.Name, err)
	}
	t.batch = t.device.BatchSize()
	if t.link, err = t.handle.LinkByName(t.name); err != nil {
		return fmt.Errorf("TUN device %s: %w", t.name, err)
	}
	if err := t.handle.LinkSetMTU(t.link, t.mtu); err != nil {
		return fmt.Errorf("TUN device %s: MTU %d: %w", t.name, t.mtu, err)
	}
	// The default of 500 overflows when a bulk transfer begins, and messages are
	// among what the kernel then drops. Past the device the classes queue apart.
	_ = t.handle.LinkSetTxQLen(t.link, queueLength)
	if t.offload {
		// The kernel cuts up for itself what Read could not return at once. Kernels
		// too old for it lose the rest of such super-segments: TUNStats.Truncated.
		_ = t.handle.LinkSetGSOMaxSegs(t.link, t.batch)
	}
	// No link-local address: it would only send router solicitations through the
	// tunnel. A host without IPv6 refuses, and has none anyway.
	_ = t.handle.LinkSetIP6AddrGenMode(t.link, addrGenNone)
	if err := t.handle.LinkSetUp(t.link); err != nil {
		return fmt.Errorf("TUN device %s: setting it up: %w", t.name, err)
	}
	for _, a := range cfg.Addresses {
		if err := t.addAddress(a); err != nil {
			return err
		}
	}
	return nil
}

// openDriver makes the device and returns its file descriptor. wireguard's own
// CreateTUN leaves the descriptor open when it fails, and knows no device without
// offloads.
func openDriver(name string, offload bool) (int, error) {
	fd, err := unix.Open(tunDriver, unix.O_RDWR|unix.O_CLOEXEC, 0)
	switch {
	case err == unix.ENOENT || err == unix.ENODEV || err == unix.ENXIO:
		return 0, fmt.Errorf("%s: %w (%w): load the module with `modprobe tun`, or pass the device into the container", tunDriver, ErrNoTUN, err)
	case err == unix.EACCES || err == unix.EPERM:
		return 0, errNotPermitted(tunDriver, err)
	case err != nil:
		return 0, fmt.Errorf("%s: %w", tunDriver, err)
	}
	ifreq, err := unix.NewIfreq(name)
	if err == nil {
		flags := uint16(unix.IFF_TUN | unix.IFF_NO_PI)
		if offload {
			flags |= unix.IFF_VNET_HDR
		}
		ifreq.SetUint16(flags)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, ifreq)
	}
	if err == nil {
		return fd, nil
	}
	unix.Close(fd)
	switch err {
	case unix.EPERM, unix.EACCES:
		return 0, errNotPermitted("TUN device "+name, err)
	case unix.EBUSY, unix.EEXIST:
		return 0, errNameInUse(name)
	}
	return 0, fmt.Errorf("TUN device %s: %w", name, err)
}

func errNotPermitted(what string, err error) error {
	return fmt.Errorf("%s: %w (%w): run as root or with CAP_NET_ADMIN, or use a userspace end, which needs neither", what, ErrPermission, err)
}

func errNameInUse(name string) error {
	return fmt.Errorf("TUN device %s: %w: choose another name, stop the program that holds it, or remove it with `ip link del %s`", name, ErrInUse, name)
}

// Name returns the device's name, with the number that it was given.
func (t *TUN) Name() string { return t.name }

// BatchSize implements engine.Port. It is 1 without offloads.
func (t *TUN) BatchSize() int { return t.batch }

// Stats returns the counters so far.
func (t *TUN) Stats() TUNStats {
	return TUNStats{
		Joined:    t.joined.Load(),
		Refused:   t.refused.Load(),
		Unsplit:   t.unsplit.Load(),
		Truncated: t.truncated.Load(),
	}
}

// Read implements engine.Port. It does not allocate.
func (t *TUN) Read(bufs [][]byte, sizes []int) (int, error) {
	for {
		n, err := t.device.Read(bufs, sizes, 0)
		switch {
		case err == nil && n > 0:
			return n, nil
		case err == nil: // a super-segment without payload
		case errors.Is(err, tun.ErrTooManySegments):
			// All of bufs are filled; n says one less.
			t.truncated.Add(1)
			return len(bufs), nil
		case errors.Is(err, os.ErrClosed) || isSystemError(err):
			return 0, t.ended(err)
		default: // what the kernel said and what it gave do not go together
			t.unsplit.Add(1)
		}
	}
}

// ended says why the device is of no more use. wireguard calls it closed as well
// when somebody else removed it.
func (t *TUN) ended(err error) error {
	if t.closing.Load() {
		return fmt.Errorf("TUN device %s: %w", t.name, os.ErrClosed)
	}
	return fmt.Errorf("TUN device %s: %w (%v): start anew to make another", t.name, ErrGone, err)
}

// isSystemError tells the device's own errors from wireguard's about what came
// out of it.
func isSystemError(err error) bool {
	var path *os.PathError
	return errors.As(err, &path)
}

// Write implements engine.Port. It does not allocate but for errors.
func (t *TUN) Write(packets [][]byte) error {
	t.writing.Lock()
	defer t.writing.Unlock()
	var first error
	for at := 0; at < len(packets); {
		n := 1
		var err error
		if t.offload {
			n = splittable(packets[at:min(len(packets), at+t.batch)])
			err = t.writeStaged(packets[at : at+n])
		} else {
			_, err = t.device.Write(packets[at:at+1], 0)
		}
		switch {
		case err == nil:
		case errors.Is(err, os.ErrClosed):
			return t.ended(err)
		default:
			t.refused.Add(uint64(n))
			if first == nil {
				first = fmt.Errorf("TUN device %s: packet %d of %d, %d bytes: %w", t.name, at+1, len(packets), len(packets[at]), err)
			}
		}
		at += n
	}
	return first
}

// writeStaged writes packets that the kernel will not change: one, or several
// that are splittable. They are copied to where there is room for the virtio
// header before them, and behind the first one room for the rest.
func (t *TUN) writeStaged(packets [][]byte) error {
	if len(packets[0]) == 0 {
		return unix.EINVAL
	}
	if len(packets[0]) > MaxPacket {
		return unix.EMSGSIZE
	}
	t.run = t.run[:0]
	for i, p := range packets {
		if i == len(t.staged) {
			size := vnetHeader + t.mtu
			if i == 0 {
				size = 2*vnetHeader + MaxPacket
			}
			t.staged = append(t.staged, make([]byte, size))
		}
		if len(t.staged[i]) < vnetHeader+len(p) {
			t.staged[i] = make([]byte, vnetHeader+len(p))
		}
		copy(t.staged[i][vnetHeader:], p)
		t.run = append(t.run, t.staged[i][:vnetHeader+len(p)])
	}
	if len(packets) > 1 {
		t.joined.Add(uint64(len(packets)))
	}
	_, err := t.device.Write(t.run, vnetHeader)
	return err
}

// Close removes the device and with it its addresses and routes, but for the fallback
// routes. A Read that
// waits returns. Closing again does nothing.
func (t *TUN) Close() error {
	t.routing.Lock()
	defer t.routing.Unlock()
	if t.closed {
		return nil
	}
	t.closed = true
	t.closing.Store(true)
	clear(t.routes)
	t.handle.Close()
	t.events.Close()
	if t.device == nil {
		return nil
	}
	// The device is not persistent: the kernel unregisters it while it closes the
	// last descriptor, and the close waits for that.
	if err := t.device.Close(); err != nil {
		return fmt.Errorf("TUN device %s: %w", t.name, err)
	}
	return nil
}
