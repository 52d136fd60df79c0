package amqp_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/amqp"
	"sheaf/parsers/parsertest"
)

// Any gopacket program can show AMQP once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(5672, amqp.LayerTypeAMQP)

	data := parsertest.TCPPacket(5672, "\x01\x00\x01\x00\x00\x00\x10\x00\x3c\x00\x28\x00\x00\x02ex\x05a.b.c\x00\xce"+
		"\x02\x00\x01\x00\x00\x00\x0e\x00\x3c\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00\x00\xce"+
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
	parsertest.LayerErrors(t, amqp.LayerTypeAMQP, "\x03\x00\x01\x00\x00\x00\x0421", "\x03\x00\x01\x00\x00\x00\x00\x00")
}

func TestLayerParser(t *testing.T) {
	var l amqp.Layer
	const heartbeat = "\x08\x00\x00\x00\x00\x00\x00\xce"
	parsertest.LayerParser(t, &l, "AMQP\x00\x00\x09\x01"+heartbeat, amqp.LayerTypeAMQP, amqp.LayerTypeAMQP)
	if l.Name != amqp.Heartbeat {
		t.Errorf("the last is %v", l.Name)
	}
}
