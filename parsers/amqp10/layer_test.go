package amqp10_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/amqp10"
	"sheaf/parsers/parsertest"
)

// Any gopacket program can show AMQP 1.0 once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(5672, amqp10.LayerTypeAMQP10)

	data := parsertest.TCPPacket(5672, "\x00\x00\x00\x1b\x02\x00\x00\x01\x00\x53\x14\xc0\x07\x03\x43\x52\x07\xa0\x01x\x00\x53\x75\xa0\x02hi"+
		"\x00\x00\x00\x08\x02\x00\x00\x00")
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true})
	for _, l := range packet.Layers() {
		if f, isAMQP := l.(*amqp10.Layer); isAMQP {
			tag, _ := f.Field("delivery-tag")
			payload, _ := f.Field("payload")
			fmt.Printf("%v, %d bytes, tag %q, payload %q\n", f.Name, f.Length, tag.Bytes(f.Contents), payload.Bytes(f.Contents))
		}
	}
	// Output:
	// transfer, 27 bytes, tag "x", payload "\x00Su\xa0\x02hi"
	// empty, 8 bytes, tag "", payload ""
}

func TestLayerErrors(t *testing.T) {
	parsertest.LayerErrors(t, amqp10.LayerTypeAMQP10, "\x00\x00\x00\x0a\x02\x00\x00\x00\x00", "\x00\x00\x00\x09\x02\x00\x00\x00\x01")
}

func TestLayerParser(t *testing.T) {
	var l amqp10.Layer
	const empty = "\x00\x00\x00\x08\x02\x00\x00\x00"
	parsertest.LayerParser(t, &l, "AMQP\x00\x01\x00\x00"+empty, amqp10.LayerTypeAMQP10, amqp10.LayerTypeAMQP10)
	if l.Name != amqp10.Empty {
		t.Errorf("the last is %v", l.Name)
	}
}
