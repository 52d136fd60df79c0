// Package linktest has what every kind of link.Link must do, as tests: each sentence of
// the Link's and the Status's documentation, and what a gateway needs besides: guests
// that are killed, gateways that start anew, sockets that are left over.
//
// A package with a kind runs it as
//
//	func TestConformance(t *testing.T) { linktest.Run(t, linktest.Kind{ ... }) }
//
// It uses the umask and the descriptors of the process: no other test runs beside it.
package linktest

import (
	"path/filepath"
	"runtime"
	"testing"

	"sheaf/netstack/link"
)

// A Kind is what a suite needs of one kind of Link.
type Kind struct {
	// Open makes the Link of a gateway that starts, with a guest's socket at path.
	Open func(path string) (link.Link, error)

	// Start starts a guest whose NIC uses the socket at path. It returns as soon as the
	// guest is under way: frames that it sends may wait. Each guest is a new one.
	Start func(path string) (Guest, error)

	// Dials is true where the gateway dials, and the guest makes the socket.
	Dials bool

	// Silent is true where the end of a guest is seen only by sending to it.
	Silent bool

	// Outlives is true where a guest goes on with a gateway that starts anew without
	// doing anything for it.
	Outlives bool

	// SecondServed is true where a guest that comes while one is there is served when
	// that one has gone; false where it is turned away.
	SecondServed bool

	// Rubbish is what no driver sends, for which a guest is given up, by what it is
	// called.
	Rubbish map[string]func(Guest) error

	// Torn is what a guest may die in the middle of, by what it is called.
	Torn map[string]func(Guest) error
}

// A Guest is a guest's side of a Link: its hypervisor and its driver. Send and Receive
// may be called at the same time, neither allocates when all goes well, and Kill ends
// both with an error.
type Guest interface {
	// Send sends one frame, and waits while there is no room for it. It sends what is
	// too short or too long for a frame, too.
	Send(frame []byte) error

	// Receive waits for the next frame from the gateway, copies it into buf and returns
	// its length. It takes what a guest's driver takes: not before it is called may
	// more be received than a driver would have room for.
	Receive(buf []byte) (int, error)

	// Kill ends the guest as SIGKILL does its hypervisor: without a goodbye.
	Kill()
}

// Run runs the suite.
func Run(t *testing.T, k Kind) {
	warmUp(t, k)
	all := []conformance{
		{"frames in order", testOrder},
		{"sizes from the guest", testSizesIn},
		{"sizes to the guest", testSizesOut},
		{"batches", testBatches},
		{"buffers of Read are borrowed", testReadBorrows},
		{"frames of Write are borrowed", testWriteBorrows},
		{"Read waits for a guest", testReadWaits},
		{"Write drops where nobody is", testWriteDrops},
		{"Write waits for room", testWriteWaits},
		{"Write returns when the guest goes", testWriteGuestGoes},
		{"the guest waits for Read", testGuestWaits},
		{"guests come and go", testGuests},
		{"a guest dies in the middle", testTorn},
		{"rubbish", testRubbish},
		{"the gateway starts anew", testGateway},
		{"Close wakes", testCloseWakes},
		{"Close again", testCloseAgain},
		{"Close without a guest", testCloseAlone},
		{"Status does not wait", testStatusAtOnce},
		{"no allocation", testAllocations},
	}
	if !k.Dials {
		all = append(all, listening...)
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			noLeaks(t)
			c.test(t, k)
		})
	}
}

// A conformance is a test of a Kind.
type conformance struct {
	name string
	test func(*testing.T, Kind)
}

// listening are the tests of a gateway's socket.
var listening = []conformance{
	{"a second guest", testSecond},
	{"what is at the path", testPath},
	{"mode of the socket", testMode},
}

// warmUp lets the runtime open what it keeps, its poller, before descriptors are counted.
func warmUp(t *testing.T, k Kind) {
	r := newRig(t, k)
	r.guest()
	r.stop()
	runtime.GC()
}

func socketPath(t testing.TB) string { return filepath.Join(t.TempDir(), "guest") }
