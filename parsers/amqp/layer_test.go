package amqp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/amqp"
)

// tcpPacket is an IPv4 packet to the broker.
func tcpPacket(payload string) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{10, 0, 0, 2}, DstIP: []byte{10, 0, 0, 1}}
	tcp := &layers.TCP{SrcPort: 40000, DstPort: 5672, Seq: 1, Ack: 1, ACK: true, PSH: true, Window: 64}
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

// Any gopacket program can show AMQP once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(5672, amqp.LayerTypeAMQP)

	data := tcpPacket("\x01\x00\x01\x00\x00\x00\x10\x00\x3c\x00\x28\x00\x00\x02ex\x05a.b.c\x00\xce" +
		"\x02\x00\x01\x00\x00\x00\x0e\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\xce" +
		"\x03\x00\x01\x00\x00\x00\x0421.5\xce")
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true})
	for _, l := range packet.Layers() {
		if f, isAMQP := l.(*amqp.Layer); isAMQP {
			key, _ := f.Field("routing-key")
			body, _ := f.Field("body")
			fmt.Printf("%v, %d bytes, routing key %q, body %q\n", f.Name, f.Length, key.Bytes(f.Contents), body.Bytes(f.Contents))
		}
	}
	// Output:
	// basic.publish, 24 bytes, routing key "a.b.c", body ""
	// content-header, 22 bytes, routing key "", body ""
	// content-body, 12 bytes, routing key "", body "21.5"
}

func TestLayerErrors(t *testing.T) {
	p := gopacket.NewPacket([]byte("\x03\x00\x01\x00\x00\x00\x0421"), amqp.LayerTypeAMQP, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), amqp.ErrShort) || !p.Metadata().Truncated {
		t.Errorf("cut frame: %v", p)
	}
	p = gopacket.NewPacket([]byte("\x03\x00\x01\x00\x00\x00\x00\x00"), amqp.LayerTypeAMQP, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), amqp.ErrMalformed) {
		t.Errorf("malformed frame: %v", p)
	}
}

func TestLayerParser(t *testing.T) {
	var l amqp.Layer
	parser := gopacket.NewDecodingLayerParser(amqp.LayerTypeAMQP, &l)
	var decoded []gopacket.LayerType
	const heartbeat = "\x08\x00\x00\x00\x00\x00\x00\xce"
	if err := parser.DecodeLayers([]byte("AMQP\x00\x00\x09\x01"+heartbeat), &decoded); err != nil {
		t.Fatal(err)
	}
	if len(decoded) != 2 || l.Name != amqp.Heartbeat || len(l.Payload) != 0 || l.LayerType() != amqp.LayerTypeAMQP {
		t.Errorf("decoded %v, last %v", decoded, l.Name)
	}
}
