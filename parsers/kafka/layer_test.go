package kafka_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/kafka"
	"sheaf/parsers/parsertest"
)

// Any gopacket program can show Kafka once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(9092, kafka.LayerTypeKafka)

	data := parsertest.TCPPacket(9092, "\x00\x00\x00\x0d\x00\x12\x00\x00\x00\x00\x00\x01\x00\x03c-1"+
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
	parsertest.LayerErrors(t, kafka.LayerTypeKafka, "\x00\x00\x00\x07weat", "\x00\x00\x00\x01a")
}

func TestLayerParser(t *testing.T) {
	var l kafka.Layer
	parsertest.LayerParser(t, &l, "\x00\x00\x00\x05\x7f\x01\x00\x01a\x00\x00\x00\x05\x7f\x01\x00\x02b", kafka.LayerTypeKafka, kafka.LayerTypeKafka)
	if l.Name != kafka.Response {
		t.Errorf("the last is %v", l.Name)
	}
}
