package e2e

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sheaf/parsers/ip"
	"sheaf/pcap"
)

// A capture of a gateway's device, while it runs.
type capture struct {
	*process
	path string
}

// capture begins to record what goes through the site's TUN device, packets of
// at most size bytes.
func (s *site) capture(size int) *capture {
	s.gw.lab.t.Helper()
	return s.captureOn("sheaf0", size)
}

// captureOn is capture for another device of the gateway.
func (s *site) captureOn(device string, size int) *capture {
	l := s.gw.lab
	l.t.Helper()
	c := &capture{path: filepath.Join(l.dir, s.gw.name+"-"+device+".pcap")}
	c.process = launch(l.t, "tcpdump on "+s.gw.name, s.gw.command("tcpdump", "-i", device, "-w", c.path, "-s", fmt.Sprint(size), "-B", "131072", "--immediate-mode", "-Z", "root"))
	eventually(l.t, 10*time.Second, func() string {
		if !strings.Contains(c.log.String(), "listening on") {
			return "tcpdump is not listening: " + c.log.String()
		}
		return ""
	})
	return c
}

// bytes ends the capture and returns the file.
func (c *capture) bytes() []byte {
	c.t.Helper()
	c.end(syscall.SIGINT)
	b, err := os.ReadFile(c.path)
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// stop ends the capture and returns its packets, and whether they are all.
func (c *capture) stop() (packets [][]byte, complete bool) {
	c.t.Helper()
	c.end(syscall.SIGINT)
	complete = strings.Contains(c.log.String(), "\n0 packets dropped by kernel")
	f, err := os.Open(c.path)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	r, err := pcap.NewReader(f)
	if err != nil {
		c.t.Fatal(err)
	}
	for {
		p, err := r.Next()
		if errors.Is(err, io.EOF) {
			return packets, complete
		}
		if err != nil {
			c.t.Fatal(err)
		}
		if p.Data != nil {
			packets = append(packets, bytes.Clone(p.Data))
		}
	}
}

// A flow is what packets have in common between which there is an order: those that
// take one lane and are of one flow there.
type flow struct {
	src, dst     netip.Addr
	protocol     uint8       // behind the extension headers
	shown        uint8       // where the codec stops: at a fragment, or an authentication header
	part         ip.Fragment // of a datagram
	sport, dport uint16      // where the packet has them
}

func (f flow) String() string {
	return fmt.Sprintf("protocol %d %v to %v", f.protocol, netip.AddrPortFrom(f.src, f.sport), netip.AddrPortFrom(f.dst, f.dport))
}

// flowOf returns a packet's flow, and where its transport header begins.
func flowOf(p []byte) (f flow, at int) {
	var h, shallow ip.Header
	if h.Parse(p) == nil && shallow.ParseShallow(p) == nil {
		f.protocol, f.shown = h.Proto, shallow.Proto
		if f.part = h.Fragment; f.part.Part() {
			f.part = ip.First // and all others
		} else {
			f.sport, f.dport = h.Ports()
		}
	}
	f.src, f.dst = h.Src(), h.Dst()
	return f, h.Len
}

// from returns the packets that come from a site, by flow.
func from(packets [][]byte, s *site) map[flow][][]byte {
	flows := map[flow][][]byte{}
	for _, p := range packets {
		f, _ := flowOf(p)
		if s.net4.Contains(f.src) || s.net6.Contains(f.src) || f.src == s.own4 || f.src == s.own6 {
			flows[f] = append(flows[f], p)
		}
	}
	return flows
}

// wantSame fails the test unless every flow's packets at the far device are
// those at the near one.
func wantSame(t *testing.T, what string, near, far map[flow][][]byte) {
	t.Helper()
	packets, size, wrong := 0, 0, 0
	for f, want := range near {
		got := far[f]
		packets += len(want)
		for i, p := range want {
			size += len(p)
			if i < len(got) && bytes.Equal(got[i], p) {
				continue
			}
			if wrong++; wrong > 5 {
				break
			}
			if i >= len(got) {
				t.Errorf("%s: %v: %d packets of %d came out; the next is\n%x", what, f, len(got), len(want), p)
			} else {
				t.Errorf("%s: %v: packet %d of %d differs\nin  %x\nout %x", what, f, i+1, len(want), p, got[i])
			}
			break
		}
		if len(got) > len(want) {
			t.Errorf("%s: %v: %d packets came out of %d", what, f, len(got), len(want))
		}
	}
	for f, got := range far {
		if near[f] == nil {
			t.Errorf("%s: %v: %d packets came out and none went in:\n%x", what, f, len(got), got[0])
		}
	}
	if wrong > 0 {
		t.Errorf("%s: %d of %d flows differ", what, wrong, len(near))
	}
	t.Logf("%s: %d packets of %d flows, %d bytes", what, packets, len(near), size)
}

// joined returns a flow's packets with everything joined that a kernel may join
// or cut at will: neighbouring TCP segments that follow one another and are
// otherwise alike. What that leaves undetermined is zero: checksums, which are
// also unfinished before a device, and in joined segments the identification.
func joined(packets [][]byte) [][]byte {
	var out [][]byte
	var next uint32 // the sequence number that would follow
	for _, p := range packets {
		f, at := flowOf(p)
		if f.protocol == syscall.IPPROTO_UDP && f.sport != 0 && len(p) >= at+8 {
			p = bytes.Clone(p)
			clear(p[at+6 : at+8]) // checksum
		}
		if f.protocol != syscall.IPPROTO_TCP || f.sport == 0 || len(p) < at+20 {
			out, next = append(out, p), 0
			continue
		}
		header := at + int(p[at+12]>>4)*4
		if header < at+20 || header > len(p) {
			out, next = append(out, p), 0
			continue
		}
		p = bytes.Clone(p)
		clear(p[at+16 : at+18]) // checksum
		if p[0]>>4 == 4 {
			clear(p[2:4])   // length
			clear(p[4:6])   // identification
			clear(p[10:12]) // checksum
		} else {
			clear(p[4:6])
		}
		seq := binary.BigEndian.Uint32(p[at+4:])
		payload := p[header:]
		if n := len(out); n > 0 && len(payload) > 0 && seq == next && alike(out[n-1], p, at, header) {
			out[n-1][at+13] |= p[at+13] & push
			out[n-1] = append(out[n-1], payload...)
		} else {
			out = append(out, p)
		}
		next = 0
		if len(payload) > 0 {
			next = seq + uint32(len(payload))
		}
	}
	return out
}

const push = 0x08 // TCP flag

// alike tells whether the headers are the same but for the sequence number.
func alike(a, b []byte, at, header int) bool {
	if len(a) < header {
		return false
	}
	x, y := bytes.Clone(a[:header]), bytes.Clone(b[:header])
	clear(x[at+4 : at+8])
	clear(y[at+4 : at+8])
	x[at+13] &^= push
	y[at+13] &^= push
	return bytes.Equal(x, y)
}

func joinAll(flows map[flow][][]byte) map[flow][][]byte {
	for f, packets := range flows {
		flows[f] = slices.Clip(joined(packets))
	}
	return flows
}
