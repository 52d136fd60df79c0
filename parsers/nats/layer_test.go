package nats_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/nats"
	"sheaf/parsers/parsertest"
)

// Any gopacket program can show NATS once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(4222, nats.LayerTypeNATS)

	data := parsertest.TCPPacket(4222, "PUB room.1 4\r\n21.5\r\nPING\r\n")
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true})
	for _, l := range packet.Layers() {
		if m, isNATS := l.(*nats.Layer); isNATS {
			subject, _ := m.Field(nats.FieldSubject)
			body, _ := m.Field(nats.FieldPayload)
			fmt.Printf("%v, %d bytes, subject %q, body %q\n", m.Name, m.Length, subject.Bytes(m.Contents), body.Bytes(m.Contents))
		}
	}
	// Output:
	// PUB, 20 bytes, subject "room.1", body "21.5"
	// PING, 6 bytes, subject "", body ""
}

func TestLayerErrors(t *testing.T) {
	parsertest.LayerErrors(t, nats.LayerTypeNATS, "PUB room.1 4\r\n21", "PUT / HTTP/1.1\r\n")
}

func TestLayerParser(t *testing.T) {
	var l nats.Layer
	parsertest.LayerParser(t, &l, "PING\r\nSUB a 1\r\n", nats.LayerTypeNATS, nats.LayerTypeNATS)
	if l.Name != nats.SUB {
		t.Errorf("the last is %v", l.Name)
	}
}
