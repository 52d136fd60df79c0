package mqttsn_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
	"sheaf/parsers/mqttsn"
	"sheaf/parsers/parsertest"
)

// Any gopacket program can show MQTT-SN once its port has been named.
func ExampleLayer() {
	layers.RegisterUDPPortLayerType(1884, mqttsn.LayerTypeMQTTSN)

	data := parsertest.UDPPacket(1884, "\x0b\x0c\x20\x00\x07\x00\x0521.5")
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.Default)
	m, isMQTTSN := packet.Layer(mqttsn.LayerTypeMQTTSN).(*mqttsn.Layer)
	if !isMQTTSN {
		fmt.Println(packet)
		return
	}
	fmt.Printf("%v %d at QoS %d, topic %d, body %q\n", m.Name, m.ID, m.QoS(), m.Topic, m.Payload)
	// Output:
	// PUBLISH 5 at QoS 1, topic 7, body "21.5"
}

func TestLayerErrors(t *testing.T) {
	p := gopacket.NewPacket([]byte("\x42\x03\x00"), mqttsn.LayerTypeMQTTSN, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), parsers.ErrMalformed) {
		t.Errorf("malformed message: %v", p)
	}
}

func TestLayerParser(t *testing.T) {
	var l mqttsn.Layer
	var payload gopacket.Payload
	parser := gopacket.NewDecodingLayerParser(mqttsn.LayerTypeMQTTSN, &l, &payload)
	var decoded []gopacket.LayerType
	for data, want := range map[string]int{"\x04\x0f\x00\x05": 1, "\x0b\x0c\x20\x00\x07\x00\x05body": 2} {
		if err := parser.DecodeLayers([]byte(data), &decoded); err != nil {
			t.Fatal(err)
		}
		if len(decoded) != want || l.ID != 5 || l.LayerType() != mqttsn.LayerTypeMQTTSN {
			t.Errorf("decoded %v", decoded)
		}
	}
}
