package engine

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/link/ethernet"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// A guest is a virtual machine made of a TCP/IP stack, whose NIC is at a stream port.
type guest struct {
	stack *stack.Stack
	nic   *channel.Endpoint
	conn  net.Conn
	done  sync.WaitGroup
	once  sync.Once
}

// startGuest starts one with a number, which its addresses end in, at a socket.
func startGuest(t testing.TB, socket string, number byte) *guest {
	t.Helper()
	conn, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{
		conn: conn, nic: channel.New(256, 1514, tcpip.LinkAddress([]byte{0x52, 0x54, 0, 0, 0, number})),
		stack: stack.New(stack.Options{
			NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
			TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol},
		}),
	}
	t.Cleanup(g.kill)
	if err := g.stack.CreateNIC(1, ethernet.New(g.nic)); err != nil {
		t.Fatal(err)
	}
	address := tcpip.ProtocolAddress{Protocol: ipv4.ProtocolNumber, AddressWithPrefix: tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4([4]byte{10, 1, 0, number}), PrefixLen: 24}}
	if err := g.stack.AddProtocolAddress(1, address, stack.AddressProperties{}); err != nil {
		t.Fatal(err)
	}
	g.stack.SetRouteTable([]tcpip.Route{
		{Destination: address.AddressWithPrefix.Subnet(), NIC: 1},
		{Destination: header.IPv4EmptySubnet, Gateway: tcpip.AddrFrom4([4]byte{10, 1, 0, 1}), NIC: 1},
	})
	ctx, cancel := context.WithCancel(context.Background())
	g.done.Go(func() { g.send(ctx) })
	g.done.Go(func() { defer cancel(); g.receive() })
	return g
}

// send puts the frames of the stack on the socket, each behind its length.
func (g *guest) send(ctx context.Context) {
	for {
		p := g.nic.ReadContext(ctx)
		if p == nil {
			return
		}
		b := p.ToBuffer()
		frame := binary.BigEndian.AppendUint32(nil, uint32(b.Size()))
		frame = append(frame, b.Flatten()...)
		b.Release()
		p.DecRef()
		if _, err := g.conn.Write(frame); err != nil {
			return
		}
	}
}

// receive gives the stack the frames that come, until the socket ends.
func (g *guest) receive() {
	in := bufio.NewReader(g.conn)
	var length [4]byte
	for {
		if _, err := io.ReadFull(in, length[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(length[:]))
		if _, err := io.ReadFull(in, frame); err != nil {
			return
		}
		p := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)})
		g.nic.InjectInbound(0, p)
		p.DecRef()
	}
}

// kill ends the guest as its host does, without a word.
func (g *guest) kill() {
	g.once.Do(func() {
		g.conn.Close()
		g.done.Wait()
		g.stack.Destroy()
	})
}

// dial connects from the guest.
func (g *guest) dial(t testing.TB, to string) net.Conn {
	t.Helper()
	a := netip.MustParseAddrPort(to)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := gonet.DialContextTCP(ctx, g.stack, tcpip.FullAddress{NIC: 1, Addr: tcpip.AddrFrom4(a.Addr().As4()), Port: a.Port()}, ipv4.ProtocolNumber)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// guestSites starts a gateway with ports m1, m2 and so on, and one beside a server at
// 10.2.0.10:1883, with further lines and tables in the first one's configuration. sockets
// is the folder of the ports'.
func guestSites(t *testing.T, server net.Addr, ports int, lines, tables string) (hypervisor, far *site, sockets string) {
	t.Helper()
	texts, _ := userspaceTexts(t, server, "quic")
	sockets = t.TempDir()
	texts[1] = strings.Replace(texts[1], `"10.99.0.1/32"`, `"10.99.0.1/32", "10.1.0.0/24"`, 1)
	texts[0] = lines + strings.Replace(texts[0][:strings.Index(texts[0], "[[forward]]")], "address = [\"10.99.0.1\"]\n", "", 1) + tables + "[vm]\naddress = \"10.1.0.1/24\"\n"
	for i := range ports {
		texts[0] += guestPort(sockets, i+1)
	}
	far = start(t, texts[1])
	hypervisor = start(t, texts[0])
	waitUp(t, hypervisor, far)
	return hypervisor, far, sockets
}

// guestPort is the table of a port, for a guest with a number.
func guestPort(sockets string, number int) string {
	return fmt.Sprintf("[[vm.port]]\nname = \"m%d\"\nat = \"stream:%s\"\naddress = \"10.1.0.%d\"\n", number, filepath.Join(sockets, fmt.Sprint("m", number)), 10+number)
}

// exchange has a word echoed.
func exchange(c net.Conn, word string) error {
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, word); err != nil {
		return err
	}
	got := make([]byte, len(word))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != word {
		return fmt.Errorf("%q for %q: %w", got, word, err)
	}
	return nil
}

// A broker is one that takes what is published and answers nothing but connects.
type broker struct {
	net.Listener
	published chan string // bodies
}

// startBroker starts one that knows CONNECT and PUBLISH of QoS 0, each shorter than 16 kB.
func startBroker(t *testing.T) *broker {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	b := &broker{l, make(chan string, 1000)}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go b.serve(c)
		}
	}()
	return b
}

func (b *broker) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		kind, err := in.ReadByte()
		if err != nil {
			return
		}
		n, err := binary.ReadUvarint(in) // as MQTT has it
		if err != nil {
			return
		}
		body := make([]byte, n)
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		switch kind {
		case 0x10:
			_, _ = c.Write([]byte{0x20, 2, 0, 0})
		case 0x30:
			topic := int(binary.BigEndian.Uint16(body))
			b.published <- string(body[2+topic:])
		}
	}
}

// mqtt is a packet of a kind.
func mqtt(kind byte, body []byte) []byte {
	return append(binary.AppendUvarint([]byte{kind}, uint64(len(body))), body...)
}

// mqttConnect connects from a guest to the broker.
func mqttConnect(t *testing.T, g *guest, id string) net.Conn {
	t.Helper()
	c := g.dial(t, "10.2.0.10:1883")
	body := append([]byte("\x00\x04MQTT\x04\x02\x00\x3c\x00"), byte(len(id)))
	if _, err := c.Write(mqtt(0x10, append(body, id...))); err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.ReadFull(c, make([]byte, 4)); err != nil {
		t.Fatal(err)
	}
	return c
}
