package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"

	"sheaf/e2e/order"
)

// A pinger counts the answers to echo requests (RFC 792, RFC 4443 section 4).
type pinger struct {
	conn   *icmp.PacketConn
	id     int
	echo   icmp.Type
	reply  icmp.Type
	number int // of the protocol, IANA's

	mu   sync.Mutex
	sent []time.Time
	took []time.Duration
	got  map[int]bool
	one  chan struct{} // closed by the first answer
	when time.Time     // of it
}

func newPinger(a order.Ping) (p *pinger, err error) {
	p = &pinger{id: int(uint16(time.Now().UnixNano() >> 10)), got: map[int]bool{}, one: make(chan struct{})}
	from := ""
	if a.From.IsValid() {
		from = a.From.String()
	}
	if a.To.Is4() {
		p.echo, p.reply, p.number = ipv4.ICMPTypeEcho, ipv4.ICMPTypeEchoReply, 1
		p.conn, err = icmp.ListenPacket("ip4:icmp", from)
	} else {
		p.echo, p.reply, p.number = ipv6.ICMPTypeEchoRequest, ipv6.ICMPTypeEchoReply, 58
		p.conn, err = icmp.ListenPacket("ip6:ipv6-icmp", from)
	}
	return p, err
}

func ping(a order.Ping) (*order.Pinged, error) {
	p, err := newPinger(a)
	if err != nil {
		return nil, err
	}
	defer p.conn.Close()
	go p.listen()
	begin := time.Now()
	result := &order.Pinged{}
	for i := range a.Count {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * a.Every)))
		if a.First && p.answered() {
			break
		}
		p.mu.Lock()
		p.sent = append(p.sent, time.Now())
		p.mu.Unlock()
		m := icmp.Message{Type: p.echo, Body: &icmp.Echo{ID: p.id, Seq: i, Data: make([]byte, 56)}}
		b, err := m.Marshal(nil)
		if err != nil {
			return nil, err
		}
		_, _ = p.conn.WriteTo(b, &net.IPAddr{IP: a.To.AsSlice()}) // no route yet is no answer
		result.Sent++
	}
	for end := time.Now().Add(a.Wait); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if p.count() == result.Sent || a.First && p.answered() {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	result.Got, result.Took = len(p.took), quantiles(p.took)
	if result.Got > 0 {
		result.First = p.when.Sub(begin)
	}
	return result, nil
}

func (p *pinger) listen() {
	b := make([]byte, 2048)
	for {
		n, _, err := p.conn.ReadFrom(b)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		m, err := icmp.ParseMessage(p.number, b[:n])
		if err != nil || m.Type != p.reply {
			continue
		}
		if e, ok := m.Body.(*icmp.Echo); ok && e.ID == p.id {
			p.note(e.Seq)
		}
	}
}

func (p *pinger) note(seq int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if seq >= len(p.sent) || p.got[seq] {
		return
	}
	p.got[seq] = true
	if p.took = append(p.took, time.Since(p.sent[seq])); len(p.took) == 1 {
		p.when = time.Now()
		close(p.one)
	}
}

func (p *pinger) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.took)
}

func (p *pinger) answered() bool {
	select {
	case <-p.one:
		return true
	default:
		return false
	}
}

// floodBatch is how many datagrams one system call sends.
const floodBatch = 64

func flood(a order.Flood) (*order.Flooded, error) {
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(a.To))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	messages := make([]ipv4.Message, floodBatch) // of either family: the socket is connected
	for i := range messages {
		messages[i].Buffers = [][]byte{make([]byte, max(a.Size, 8))}
	}
	p := ipv4.NewPacketConn(c)
	begin, sent, faults := time.Now(), 0, 0
	for sent < a.Count && faults < a.Count {
		batch := messages[:min(floodBatch, a.Count-sent)]
		for i := range batch {
			binary.BigEndian.PutUint64(batch[i].Buffers[0], uint64(sent+i))
		}
		n, err := p.WriteBatch(batch, 0)
		if err != nil {
			faults++ // an ICMP error for one before, or no room
			continue
		}
		sent += n
	}
	return &order.Flooded{Sent: sent, Took: time.Since(begin)}, nil
}

func dial(a order.Dial) (any, error) {
	c, err := net.DialTimeout("tcp", a.To.String(), a.Wait)
	if err != nil {
		return nil, err
	}
	return nil, c.Close()
}

func resolve(a order.Resolve) ([]netip.Addr, error) {
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, a.Server.String())
	}}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return r.LookupNetIP(ctx, "ip", a.Name)
}

func run(a order.Run) (any, error) {
	cmd := exec.Command(a.Argv[0], a.Argv[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() { fmt.Println("guest:", a.Argv[0], "ended:", cmd.Wait()) }()
	for end := time.Now().Add(a.Wait); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", a.Port))
		if err == nil {
			return nil, c.Close()
		}
	}
	return nil, fmt.Errorf("%s does not listen on port %d after %v", a.Argv[0], a.Port, a.Wait)
}
