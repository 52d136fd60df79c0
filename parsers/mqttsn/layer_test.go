package mqttsn_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

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
	parsertest.LayerErrors(t, mqttsn.LayerTypeMQTTSN, "", "\x42\x03\x00")
}

func TestLayerParser(t *testing.T) {
	for data, want := range map[string][]gopacket.LayerType{
		"\x04\x0f\x00\x05":                 {mqttsn.LayerTypeMQTTSN},
		"\x0b\x0c\x20\x00\x07\x00\x05body": {mqttsn.LayerTypeMQTTSN, gopacket.LayerTypePayload},
	} {
		var l mqttsn.Layer
		if parsertest.LayerParser(t, &l, data, want...); l.ID != 5 {
			t.Errorf("%q: ID %d", data, l.ID)
		}
	}
}
