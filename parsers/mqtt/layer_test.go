package mqtt_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/mqtt"
	"sheaf/parsers/parsertest"
)

// Any gopacket program can show MQTT once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(1883, mqtt.LayerTypeMQTT)

	data := parsertest.TCPPacket(1883, "\x30\x0c\x00\x06room/121.5"+"\xc0\x00")
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
	parsertest.LayerErrors(t, mqtt.LayerTypeMQTT, "\x30\x0c\x00\x06room", "\x36\x0c\x00\x06room")
}

func TestLayerParser(t *testing.T) {
	var l mqtt.Layer
	parsertest.LayerParser(t, &l, "\xc0\x00\x40\x02\x00\x05", mqtt.LayerTypeMQTT, mqtt.LayerTypeMQTT)
	if l.Name != mqtt.PUBACK {
		t.Errorf("the last is %v", l.Name)
	}
}
