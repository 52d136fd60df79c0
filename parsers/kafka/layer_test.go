package kafka_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/kafka"
)

// tcpPacket is an IPv4 packet to the broker.
func tcpPacket(payload string) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{10, 0, 0, 2}, DstIP: []byte{10, 0, 0, 1}}
	tcp := &layers.TCP{SrcPort: 40000, DstPort: 9092, Seq: 1, Ack: 1, ACK: true, PSH: true, Window: 64}
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

// Any gopacket program can show Kafka once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(9092, kafka.LayerTypeKafka)

	data := tcpPacket("\x00\x00\x00\x0d\x00\x12\x00\x00\x00\x00\x00\x01\x00\x03c-1" +
		"\x00\x00\x00\x21\x00\x00\x00\x00\x00\x00\x00\x02\x00\x03c-1\x00\x01\x00\x00\x13\x88\x00\x00\x00\x01\x00\x04room\x00\x00\x00\x00")
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true})
	for _, l := range packet.Layers() {
		if m, isKafka := l.(*kafka.Layer); isKafka {
			fmt.Printf("%v version %d, topic %q, from %q\n", m.Name, m.Version, m.Topic.Bytes(m.Contents), m.Client.Bytes(m.Contents))
		}
	}
	// Output:
	// ApiVersions version 0, topic "", from "c-1"
	// Produce version 0, topic "room", from "c-1"
}

func TestLayerErrors(t *testing.T) {
	p := gopacket.NewPacket([]byte("\x00\x00\x00\x07weat"), kafka.LayerTypeKafka, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), kafka.ErrShort) || !p.Metadata().Truncated {
		t.Errorf("cut message: %v", p)
	}
	p = gopacket.NewPacket([]byte("\x00\x00\x00\x01a"), kafka.LayerTypeKafka, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), kafka.ErrMalformed) {
		t.Errorf("malformed message: %v", p)
	}
}

func TestLayerParser(t *testing.T) {
	var l kafka.Layer
	parser := gopacket.NewDecodingLayerParser(kafka.LayerTypeKafka, &l)
	var decoded []gopacket.LayerType
	if err := parser.DecodeLayers([]byte("\x00\x00\x00\x05\x7f\x01\x00\x01a\x00\x00\x00\x05\x7f\x01\x00\x02b"), &decoded); err != nil {
		t.Fatal(err)
	}
	if len(decoded) != 2 || l.Name != kafka.Response || len(l.Payload) != 0 || l.LayerType() != kafka.LayerTypeKafka {
		t.Errorf("decoded %v, last %v", decoded, l.Name)
	}
}
