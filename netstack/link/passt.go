package link

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// handTime is how long who connects may take to hand a guest over. The next one waits
// meanwhile; tools/passt does it at once.
const handTime = time.Second

// errHanded tells that who connected has handed over no guest.
var errHanded = errors.New("no guest was handed over")

// OpenPasst makes a Stream for QEMU's -netdev passt, which is there since QEMU 10.1. That
// one makes a pair of sockets, starts a program with one of them as descriptor 3, and
// starts it anew when that one ends (net/passt.c). tools/passt is such a program: it
// hands the descriptor to the gateway over the socket at Config.Path, which listens, in a
// message of one byte (SCM_RIGHTS of unix(7)), and lives as long as the gateway keeps that
// connection, since QEMU means to kill it at the end. On the pair it is as with a Stream.
//
// Guests of -netdev stream, which passt serves on a socket of its own, need no more than
// [OpenStream].
func OpenPasst(c Config) (*Stream, error) {
	if c.Dial {
		return nil, fmt.Errorf("passt: %w: there is nobody to dial", ErrPath)
	}
	s, err := OpenStream(c)
	if err != nil {
		return nil, err
	}
	s.handed = true
	return s, nil
}

// takeOver returns the guest that helper hands over. On error helper is closed.
func takeOver(helper *net.UnixConn) (guest, _ *net.UnixConn, err error) {
	guest, err = handedOver(helper)
	if err != nil {
		helper.Close()
		return nil, nil, err
	}
	return guest, helper, nil
}

// handedOver receives one descriptor, of a unix stream socket that is connected.
func handedOver(helper *net.UnixConn) (*net.UnixConn, error) {
	_ = helper.SetReadDeadline(time.Now().Add(handTime))
	space := make([]byte, unix.CmsgSpace(4)) // which has room for two
	_, n, _, _, err := helper.ReadMsgUnix(make([]byte, 1), space)
	if err != nil {
		return nil, err
	}
	files := received(space[:n])
	defer func() {
		for _, f := range files { // FileConn has its own
			f.Close()
		}
	}()
	if len(files) != 1 {
		return nil, errHanded
	}
	c, err := net.FileConn(files[0])
	if err != nil {
		return nil, err
	}
	guest, ok := c.(*net.UnixConn)
	if !ok || guest.LocalAddr().Network() != "unix" {
		c.Close()
		return nil, errHanded
	}
	return guest, nil
}

// received returns the descriptors in control messages, which the caller closes.
func received(control []byte) (files []*os.File) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for i := range messages {
		descriptors, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, d := range descriptors {
			files = append(files, os.NewFile(uintptr(d), "handed over"))
		}
	}
	return files
}
