package stomp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/stomp"
)

// tcpPacket is an IPv4 packet to the server.
func tcpPacket(payload string) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{10, 0, 0, 2}, DstIP: []byte{10, 0, 0, 1}}
	tcp := &layers.TCP{SrcPort: 40000, DstPort: 61613, Seq: 1, Ack: 1, ACK: true, PSH: true, Window: 64}
	if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
		panic(err)
	}
	buf := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buf, opts, ip, tcp, gopacket.Payload(payload)); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// Any gopacket program can show STOMP once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(61613, stomp.LayerTypeSTOMP)

	data := tcpPacket("SEND\ndestination:/topic/room\n\n21.5\x00" + "ACK\nid:7\n\n\x00")
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true})
	for _, l := range packet.Layers() {
		if m, isSTOMP := l.(*stomp.Layer); isSTOMP {
			destination, _ := m.Header(m.Contents, "destination")
			fmt.Printf("%v, %d bytes, destination %q, body %q\n", m.Name, m.Length, destination.Bytes(m.Contents), m.Body().Bytes(m.Contents))
		}
	}
	// Output:
	// SEND, 35 bytes, destination "/topic/room", body "21.5"
	// ACK, 11 bytes, destination "", body ""
}

func TestLayerErrors(t *testing.T) {
	p := gopacket.NewPacket([]byte("SEND\na:b\n\n21"), stomp.LayerTypeSTOMP, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), stomp.ErrShort) || !p.Metadata().Truncated {
		t.Errorf("cut frame: %v", p)
	}
	p = gopacket.NewPacket([]byte("PUT / HTTP/1.1\r\n"), stomp.LayerTypeSTOMP, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), stomp.ErrMalformed) {
		t.Errorf("malformed frame: %v", p)
	}
}

func TestLayerParser(t *testing.T) {
	var l stomp.Layer
	parser := gopacket.NewDecodingLayerParser(stomp.LayerTypeSTOMP, &l)
	var decoded []gopacket.LayerType
	if err := parser.DecodeLayers([]byte("\nSEND\n\n\x00"), &decoded); err != nil {
		t.Fatal(err)
	}
	if len(decoded) != 2 || l.Name != stomp.SEND || len(l.Payload) != 0 || l.LayerType() != stomp.LayerTypeSTOMP {
		t.Errorf("decoded %v, last %v", decoded, l.Name)
	}
}
