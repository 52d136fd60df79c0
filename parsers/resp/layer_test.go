package resp_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/parsertest"
	"sheaf/parsers/resp"
)

// Any gopacket program can show RESP once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(6379, resp.LayerTypeRESP)

	data := parsertest.TCPPacket(6379, "*3\r\n$7\r\nPUBLISH\r\n$6\r\nroom:1\r\n$4\r\n21.5\r\nPING\r\n")
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true})
	for _, l := range packet.Layers() {
		if m, isRESP := l.(*resp.Layer); isRESP {
			channel, _ := m.Field(resp.FieldEvent)
			body, _ := m.Field(resp.FieldPayload)
			fmt.Printf("%v, %d bytes, channel %q, body %q\n", m.Name, m.Length, channel.Bytes(m.Contents), body.Bytes(m.Contents))
		}
	}
	// Output:
	// PUBLISH, 39 bytes, channel "room:1", body "21.5"
	// PING, 6 bytes, channel "", body ""
}

func TestLayerErrors(t *testing.T) {
	parsertest.LayerErrors(t, resp.LayerTypeRESP, "$4\r\n21", "PUT / HTTP/1.1\r\n")
}

func TestLayerParser(t *testing.T) {
	var l resp.Layer
	parsertest.LayerParser(t, &l, "+OK\r\n:1\r\n", resp.LayerTypeRESP, resp.LayerTypeRESP)
	if l.Name != resp.Integer {
		t.Errorf("the last is %v", l.Name)
	}
}
