package parsertest

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
)

// TCPPacket is an IPv4 packet to a TCP port.
func TCPPacket(port uint16, payload string) []byte {
	tcp := &layers.TCP{SrcPort: 40000, DstPort: layers.TCPPort(port), Seq: 1, Ack: 1, ACK: true, PSH: true, Window: 64}
	return packet(layers.IPProtocolTCP, tcp, payload)
}

// UDPPacket is an IPv4 packet to a UDP port.
func UDPPacket(port uint16, payload string) []byte {
	return packet(layers.IPProtocolUDP, &layers.UDP{SrcPort: 40000, DstPort: layers.UDPPort(port)}, payload)
}

func packet(proto layers.IPProtocol, transport interface {
	gopacket.SerializableLayer
	SetNetworkLayerForChecksum(gopacket.NetworkLayer) error
}, payload string) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: proto, SrcIP: []byte{10, 0, 0, 2}, DstIP: []byte{10, 0, 0, 1}}
	if err := transport.SetNetworkLayerForChecksum(ip); err != nil {
		panic(err)
	}
	buf := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buf, opts, ip, transport, gopacket.Payload(payload)); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// LayerErrors holds that a cut message and a malformed one are decode errors that
// say so, and that gopacket hears of the cut. cut is empty where messages are
// datagrams, which are not cut.
func LayerErrors(t *testing.T, layer gopacket.LayerType, cut, malformed string) {
	t.Helper()
	if cut != "" {
		p := gopacket.NewPacket([]byte(cut), layer, gopacket.Default)
		if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), parsers.ErrCut) || !p.Metadata().Truncated {
			t.Errorf("cut message: %v", p)
		}
	}
	p := gopacket.NewPacket([]byte(malformed), layer, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), parsers.ErrMalformed) {
		t.Errorf("malformed message: %v", p)
	}
}

// LayerParser holds that gopacket decodes all of data into l, again and again, or a
// payload at its end, and that the layers are of the types that want says.
func LayerParser[P parsers.DecodingLayer[L], L any](t TB, l P, data string, want ...gopacket.LayerType) {
	t.Helper()
	var payload gopacket.Payload
	var decoded []gopacket.LayerType
	if err := gopacket.NewDecodingLayerParser(want[0], l, &payload).DecodeLayers([]byte(data), &decoded); err != nil {
		t.Fatalf("%v", err)
	}
	if !slices.Equal(decoded, want) || l.LayerType() != want[0] {
		t.Fatalf("decoded %v, the last %v, want %v", decoded, l.LayerType(), want)
	}
	if n := len(l.LayerPayload()) - len(payload); n != 0 {
		t.Fatalf("%d bytes are left", n)
	}
}
