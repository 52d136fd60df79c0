package mqtt_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/mqtt"
)

// tcpPacket is an IPv4 packet to the broker.
func tcpPacket(payload []byte) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{10, 0, 0, 2}, DstIP: []byte{10, 0, 0, 1}}
	tcp := &layers.TCP{SrcPort: 40000, DstPort: 1883, Seq: 1, Ack: 1, ACK: true, PSH: true, Window: 64}
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

// Any gopacket program can show MQTT once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(1883, mqtt.LayerTypeMQTT)

	data := tcpPacket([]byte("\x30\x0c\x00\x06room/121.5" + "\xc0\x00"))
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true})
	for _, l := range packet.Layers() {
		if m, isMQTT := l.(*mqtt.Layer); isMQTT {
			topic, _ := m.Field(mqtt.FieldTopic)
			body, _ := m.Field(mqtt.FieldPayload)
			fmt.Printf("%v, %d bytes, topic %q, body %q\n", m.Name, m.Length, topic.Bytes(m.Contents), body.Bytes(m.Contents))
		}
	}
	// Output:
	// PUBLISH, 14 bytes, topic "room/1", body "21.5"
	// PINGREQ, 2 bytes, topic "", body ""
}

func TestLayerErrors(t *testing.T) {
	p := gopacket.NewPacket([]byte("\x30\x0c\x00\x06room"), mqtt.LayerTypeMQTT, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), mqtt.ErrShort) || !p.Metadata().Truncated {
		t.Errorf("cut message: %v", p)
	}
	p = gopacket.NewPacket([]byte("\x36\x0c\x00\x06room"), mqtt.LayerTypeMQTT, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), mqtt.ErrMalformed) {
		t.Errorf("malformed message: %v", p)
	}
}

func TestLayerParser(t *testing.T) {
	var l mqtt.Layer
	parser := gopacket.NewDecodingLayerParser(mqtt.LayerTypeMQTT, &l)
	var decoded []gopacket.LayerType
	if err := parser.DecodeLayers([]byte("\xc0\x00\x40\x02\x00\x05"), &decoded); err != nil {
		t.Fatal(err)
	}
	if len(decoded) != 2 || l.Name != mqtt.PUBACK || len(l.Payload) != 0 || l.LayerType() != mqtt.LayerTypeMQTT {
		t.Errorf("decoded %v, last %v", decoded, l.Name)
	}
}
