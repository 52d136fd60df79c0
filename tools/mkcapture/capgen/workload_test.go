package capgen

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// TestRegularWorkloads checks that what the simulation makes is what healthy
// connections between Linux hosts look like, packet by packet.
func TestRegularWorkloads(t *testing.T) {
	for _, tt := range []struct {
		name      string
		workload  Workload
		cfg       Config
		open      bool // connections are opened and closed inside
		published int  // how many messages there are, 0 for any
	}{
		{"fanout", Fanout, Config{Clients: 12}, true, 180},
		{"fanout QoS 1", Fanout, Config{Clients: 12, QoS: 1, Messages: 60}, true, 720},
		{"fanout IPv6", Fanout, Config{Clients: 7, IPv6: true}, true, 105},
		{"fanout with few hosts", Fanout, Config{Clients: 30, Hosts: 4}, true, 450},
		{"fanout with a long way", Fanout, Config{Clients: 12, QoS: 1, RTT: 80 * time.Millisecond}, true, 180},
		{"fanout faster than the broker", Fanout, Config{Clients: 300, Rate: 1000}, true, 4500},
		{"fanoutskew", FanoutSkew, Config{Clients: 12}, false, 480},
		{"telemetry", Telemetry, Config{Clients: 12}, true, 120},
		{"telemetry QoS 0", Telemetry, Config{Clients: 12, QoS: -1}, true, 120},
		{"control", Control, Config{Clients: 12}, true, 240},
		{"control QoS 1 IPv6", Control, Config{Clients: 12, QoS: 1, IPv6: true}, true, 240},
		{"mixed", Mixed, Config{Clients: 20, Messages: 100}, true, 0},
		{"mixed QoS 1 IPv6", Mixed, Config{Clients: 20, Messages: 100, QoS: 1, IPv6: true}, true, 0},
		{"telemetry over WebSocket", Telemetry, Config{Clients: 12, WebSocket: true}, true, 120},
		{"fanout QoS 1 over WebSocket, IPv6", Fanout, Config{Clients: 12, QoS: 1, Messages: 60, IPv6: true, WebSocket: true}, true, 720},
		{"flows", Flows, Config{Clients: 50}, false, 500},
		{"flows IPv6", Flows, Config{Clients: 50, IPv6: true}, false, 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWatcher(t, tt.cfg.IPv6)
			if err := Generate(tt.workload, tt.cfg, w.see); err != nil {
				t.Fatal(err)
			}
			published := 0
			var err error
			for key, f := range w.flows {
				if tt.open && !(f.sawSYN && f.sawFIN) {
					t.Errorf("%v: opened %t, closed %t: want both", key, f.sawSYN, f.sawFIN)
				}
				if tt.cfg.WebSocket {
					if f.data, err = unframe(f.data, key.dst.Port() == webSocketPort); err != nil {
						t.Errorf("%v: %v", key, err)
					}
				}
				n, err := countPublish(f.data)
				if err != nil {
					t.Errorf("%v: %v", key, err)
				}
				published += n
			}
			if tt.published != 0 && published != tt.published {
				t.Errorf("%d PUBLISH messages, want %d", published, tt.published)
			}
			if wantFlows := w.wantFlows(tt.workload, tt.cfg.Clients); len(w.flows) != wantFlows {
				t.Errorf("%d flows, want %d", len(w.flows), wantFlows)
			}
		})
	}
}

// A watcher decodes packets and follows the flows.
type watcher struct {
	t       *testing.T
	parser  *gopacket.DecodingLayerParser
	ip4     layers.IPv4
	ip6     layers.IPv6
	tcp     layers.TCP
	payload gopacket.Payload
	decoded []gopacket.LayerType

	last    time.Duration
	packets int
	flows   map[flowKey]*watched
}

type flowKey struct{ src, dst netip.AddrPort }

type watched struct {
	next, ack, tsVal uint32
	id               uint16
	sawSYN, sawFIN   bool
	data             []byte
}

func newWatcher(t *testing.T, ipv6 bool) *watcher {
	w := &watcher{t: t, flows: map[flowKey]*watched{}}
	first := layers.LayerTypeIPv4
	if ipv6 {
		first = layers.LayerTypeIPv6
	}
	w.parser = gopacket.NewDecodingLayerParser(first, &w.ip4, &w.ip6, &w.tcp, &w.payload)
	return w
}

func (w *watcher) wantFlows(wl Workload, clients int) int {
	if wl == Flows {
		return clients
	}
	return 2 * clients
}

func (w *watcher) see(at time.Duration, packet []byte) error {
	w.packets++
	if at < w.last {
		return fmt.Errorf("packet %d is at %v, after one at %v", w.packets, at, w.last)
	}
	w.last = at
	if len(packet) > 1500 {
		return fmt.Errorf("packet %d has %d bytes", w.packets, len(packet))
	}
	if err := w.parser.DecodeLayers(packet, &w.decoded); err != nil {
		return fmt.Errorf("packet %d: %w", w.packets, err)
	}
	w.payload = nil
	key, err := w.checkIP(packet)
	if err != nil {
		return fmt.Errorf("packet %d: %w", w.packets, err)
	}
	if err := w.checkTCP(key); err != nil {
		return fmt.Errorf("packet %d at %v, %v: %w", w.packets, at, key, err)
	}
	return nil
}

func (w *watcher) checkIP(packet []byte) (flowKey, error) {
	var src, dst netip.Addr
	var pseudo uint64
	var ttl byte
	if w.decoded[0] == layers.LayerTypeIPv4 {
		src, dst, ttl = netip.AddrFrom4([4]byte(w.ip4.SrcIP)), netip.AddrFrom4([4]byte(w.ip4.DstIP)), w.ip4.TTL
		if int(w.ip4.Length) != len(packet) || w.ip4.Flags != layers.IPv4DontFragment {
			return flowKey{}, fmt.Errorf("length %d of %d, flags %v", w.ip4.Length, len(packet), w.ip4.Flags)
		}
		if fold(sum(packet[:20], 0)) != 0xffff {
			return flowKey{}, errors.New("IP checksum is wrong")
		}
		pseudo = sum(packet[12:20], 0)
		packet = packet[20:]
	} else {
		src, dst, ttl = netip.AddrFrom16([16]byte(w.ip6.SrcIP)), netip.AddrFrom16([16]byte(w.ip6.DstIP)), w.ip6.HopLimit
		if int(w.ip6.Length) != len(packet)-40 || w.ip6.FlowLabel == 0 {
			return flowKey{}, fmt.Errorf("length %d of %d, flow label %d", w.ip6.Length, len(packet), w.ip6.FlowLabel)
		}
		pseudo = sum(packet[8:40], 0)
		packet = packet[40:]
	}
	if fold(sum(packet, pseudo+protoTCP+uint64(len(packet)))) != 0xffff {
		return flowKey{}, errors.New("TCP checksum is wrong")
	}
	key := flowKey{netip.AddrPortFrom(src, uint16(w.tcp.SrcPort)), netip.AddrPortFrom(dst, uint16(w.tcp.DstPort))}
	if want := map[bool]byte{true: 64, false: 62}[w.tcp.SrcPort == brokerPort || w.tcp.SrcPort == webSocketPort]; ttl != want {
		return key, fmt.Errorf("TTL %d, want %d", ttl, want)
	}
	return key, nil
}

func (w *watcher) checkTCP(key flowKey) error {
	f, ok := w.flows[key]
	if !ok {
		f = &watched{next: w.tcp.Seq, ack: w.tcp.Ack, id: w.ip4.Id}
		w.flows[key] = f
	}
	if w.tcp.Seq != f.next {
		return fmt.Errorf("sequence number %d, want %d", w.tcp.Seq, f.next)
	}
	if r := w.flows[flowKey{key.dst, key.src}]; r != nil && w.tcp.ACK && int32(w.tcp.Ack-r.next) > 0 {
		return fmt.Errorf("acknowledges %d, but only up to %d was sent", w.tcp.Ack, r.next)
	}
	if f.ack != 0 && int32(w.tcp.Ack-f.ack) < 0 {
		return fmt.Errorf("acknowledges %d after %d", w.tcp.Ack, f.ack)
	}
	f.next += uint32(len(w.tcp.Payload))
	if w.tcp.SYN || w.tcp.FIN {
		f.next++
	}
	f.ack = w.tcp.Ack
	f.sawSYN = f.sawSYN || w.tcp.SYN
	f.sawFIN = f.sawFIN || w.tcp.FIN
	f.data = append(f.data, w.tcp.Payload...)

	switch synAck := w.tcp.SYN && w.tcp.ACK; {
	case synAck && w.ip4.Id != 0:
		return fmt.Errorf("SYN-ACK with identification %d", w.ip4.Id)
	case synAck:
		f.id = 0
	case f.id != 0 && w.ip4.Id != f.id:
		return fmt.Errorf("identification %d, want %d", w.ip4.Id, f.id)
	default:
		if w.ip4.Id != 0 {
			f.id = w.ip4.Id + 1
		}
	}
	for _, o := range w.tcp.Options {
		if o.OptionType != layers.TCPOptionKindTimestamps {
			continue
		}
		val := binary.BigEndian.Uint32(o.OptionData)
		if ok && int32(val-f.tsVal) < 0 {
			return fmt.Errorf("timestamp %d after %d", val, f.tsVal)
		}
		f.tsVal = val
		return nil
	}
	return errors.New("no timestamps")
}

// countPublish checks that a stream is whole MQTT messages, and counts those
// that are PUBLISH.
func countPublish(b []byte) (int, error) {
	published := 0
	for at := 0; at < len(b); {
		n, size := uint64(0), 0
		for i, c := range b[at+1:] {
			n |= uint64(c&0x7f) << (7 * i)
			if c < 0x80 {
				size = 2 + i + int(n)
				break
			}
		}
		if size == 0 || at+size > len(b) {
			return 0, fmt.Errorf("message at %d does not end: % x", at, b[at:min(len(b), at+8)])
		}
		switch b[at] >> 4 {
		case 0, 15:
			return 0, fmt.Errorf("message at %d has type %#x", at, b[at])
		case mqttPublish >> 4:
			published++
		}
		at += size
	}
	return published, nil
}

func digest(t *testing.T, w Workload, cfg Config) [32]byte {
	t.Helper()
	h := sha256.New()
	if err := Generate(w, cfg, func(at time.Duration, p []byte) error {
		fmt.Fprintln(h, at, p)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return [32]byte(h.Sum(nil))
}

func TestSameSeedSamePackets(t *testing.T) {
	for _, w := range Workloads() {
		cfg := Config{Clients: 8, Messages: 20, Seed: 7}
		a, b := digest(t, w, cfg), digest(t, w, cfg)
		if a != b {
			t.Errorf("%s: differs from run to run", w)
		}
		cfg.Seed++
		if digest(t, w, cfg) == a {
			t.Errorf("%s: the seed changes nothing", w)
		}
	}
}

func TestSkewedPacketIDs(t *testing.T) {
	w := newWatcher(t, false)
	if err := Generate(FanoutSkew, Config{Clients: 20}, w.see); err != nil {
		t.Fatal(err)
	}
	ids := map[uint16]bool{}
	for key, f := range w.flows {
		if key.src.Port() == brokerPort {
			ids[binary.BigEndian.Uint16(f.data[5+len(alarmTopic):])] = true
		}
	}
	if len(ids) < 15 {
		t.Errorf("20 clients begin with %d different packet identifiers, want 15 or more", len(ids))
	}
}

func TestGenerateEndsWithEmitsError(t *testing.T) {
	stop := errors.New("disk full")
	for _, w := range Workloads() {
		n := 0
		err := Generate(w, Config{}, func(time.Duration, []byte) error {
			if n++; n == 30 {
				return stop
			}
			return nil
		})
		if !errors.Is(err, stop) || n != 30 {
			t.Errorf("%s: %v after %d packets, want %v after 30", w, err, n, stop)
		}
	}
}

func TestGenerateChecksConfig(t *testing.T) {
	for _, tt := range []struct {
		workload Workload
		cfg      Config
		want     string
	}{
		{"fanin", Config{}, "want one of control, fanout, fanoutskew, flows, mixed, odd, telemetry"},
		{Fanout, Config{Clients: -1}, "clients"},
		{Fanout, Config{Clients: MaxClients + 1}, "clients"},
		{Flows, Config{Clients: MaxFlows + 1}, "clients"},
		{Fanout, Config{Clients: 5, Hosts: 6}, "hosts"},
		{Fanout, Config{Clients: 40_000, Hosts: 1}, "hosts"},
		{Fanout, Config{Messages: -1}, "messages"},
		{Fanout, Config{Rate: 1e9}, "rate"},
		{Fanout, Config{QoS: 2}, "QoS 2"},
		{Fanout, Config{RTT: -1}, "round-trip"},
		{Odd, Config{WebSocket: true}, "WebSocket"},
		{Flows, Config{WebSocket: true}, "WebSocket"},
	} {
		err := Generate(tt.workload, tt.cfg, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %+v: %v, want something about %q", tt.workload, tt.cfg, err, tt.want)
		}
	}
}

func TestMessages(t *testing.T) {
	for _, tt := range []struct {
		name      string
		got, want []byte
	}{
		{"CONNECT", appendConnect(nil, "panel-0003", 60), []byte("\x10\x16\x00\x04MQTT\x04\x02\x00<\x00\npanel-0003")},
		{"SUBSCRIBE", appendSubscribe(nil, 1, 0, []string{alarmTopic}), []byte("\x82\x13\x00\x01\x00\x0eplant/4/alarms\x00")},
		{"SUBACK", appendSubAck(nil, 1, 0, 5), []byte("\x90\x07\x00\x01\x00\x00\x00\x00\x00")},
		{"PUBLISH", appendPublish(nil, alarmTopic, 1, 0x31, make([]byte, 114))[:21], []byte("2\x84\x01\x00\x0eplant/4/alarms\x001")},
		{"PUBACK", appendPubAck(nil, 2), []byte("@\x02\x00\x02")},
	} {
		if !bytes.Equal(tt.got, tt.want) {
			t.Errorf("%s is %q, want %q as captured from real ones", tt.name, tt.got, tt.want)
		}
	}
}
