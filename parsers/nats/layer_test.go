package nats_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/nats"
)

// tcpPacket is an IPv4 packet to the server.
func tcpPacket(payload string) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{10, 0, 0, 2}, DstIP: []byte{10, 0, 0, 1}}
	tcp := &layers.TCP{SrcPort: 40000, DstPort: 4222, Seq: 1, Ack: 1, ACK: true, PSH: true, Window: 64}
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

// Any gopacket program can show NATS once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(4222, nats.LayerTypeNATS)

	data := tcpPacket("PUB room.1 4\r\n21.5\r\nPING\r\n")
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true})
	for _, l := range packet.Layers() {
		if m, isNATS := l.(*nats.Layer); isNATS {
			subject, _ := m.Field(nats.FieldSubject)
			body, _ := m.Field(nats.FieldPayload)
			fmt.Printf("%v, %d bytes, subject %q, body %q\n", m.Name, m.Length, subject.Bytes(m.Contents), body.Bytes(m.Contents))
		}
	}
	// Output:
	// PUB, 20 bytes, subject "room.1", body "21.5"
	// PING, 6 bytes, subject "", body ""
}

func TestLayerErrors(t *testing.T) {
	p := gopacket.NewPacket([]byte("PUB room.1 4\r\n21"), nats.LayerTypeNATS, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), nats.ErrShort) || !p.Metadata().Truncated {
		t.Errorf("cut message: %v", p)
	}
	p = gopacket.NewPacket([]byte("PUT / HTTP/1.1\r\n"), nats.LayerTypeNATS, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), nats.ErrMalformed) {
		t.Errorf("malformed message: %v", p)
	}
}

func TestLayerParser(t *testing.T) {
	var l nats.Layer
	parser := gopacket.NewDecodingLayerParser(nats.LayerTypeNATS, &l)
	var decoded []gopacket.LayerType
	if err := parser.DecodeLayers([]byte("PING\r\nSUB a 1\r\n"), &decoded); err != nil {
		t.Fatal(err)
	}
	if len(decoded) != 2 || l.Name != nats.SUB || len(l.Payload) != 0 || l.LayerType() != nats.LayerTypeNATS {
		t.Errorf("decoded %v, last %v", decoded, l.Name)
	}
}
