package stomp_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/parsertest"
	"sheaf/parsers/stomp"
)

// Any gopacket program can show STOMP once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(61613, stomp.LayerTypeSTOMP)

	data := parsertest.TCPPacket(61613, "SEND\ndestination:/topic/room\n\n21.5\x00"+"ACK\nid:7\n\n\x00")
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true})
	for _, l := range packet.Layers() {
		if m, isSTOMP := l.(*stomp.Layer); isSTOMP {
			destination, _ := m.Header(m.Contents, "destination")
			fmt.Printf("%v, %d bytes, destination %q, body %q\n", m.Name, m.Length, destination.Bytes(m.Contents), m.Body().Bytes(m.Contents))
		}
	}
	// Output:
	// SEND, 35 bytes, destination "/topic/room", body "21.5"
	// ACK, 11 bytes, destination "", body ""
}

func TestLayerErrors(t *testing.T) {
	parsertest.LayerErrors(t, stomp.LayerTypeSTOMP, "SEND\na:b\n\n21", "PUT / HTTP/1.1\r\n")
}

func TestLayerParser(t *testing.T) {
	var l stomp.Layer
	parsertest.LayerParser(t, &l, "\nSEND\n\n\x00", stomp.LayerTypeSTOMP, stomp.LayerTypeSTOMP)
	if l.Name != stomp.SEND {
		t.Errorf("the last is %v", l.Name)
	}
}
