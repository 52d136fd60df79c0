package websocket_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/parsertest"
	"sheaf/parsers/websocket"
)

// Any gopacket program can show WebSocket once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(9001, websocket.LayerTypeWebSocket)

	data := parsertest.TCPPacket(9001, "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"+"\x89\x00")
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true})
	for _, l := range packet.Layers() {
		if m, isFrame := l.(*websocket.Layer); isFrame {
			fmt.Printf("%v, %d bytes, masked %t, %q\n", m.Name, m.Length, m.Masked, m.AppendPayload(nil, m.Contents))
		}
	}
	// Output:
	// TEXT, 11 bytes, masked true, "Hello"
	// PING, 2 bytes, masked false, ""
}

func TestLayerErrors(t *testing.T) {
	parsertest.LayerErrors(t, websocket.LayerTypeWebSocket, "\x82\x05abcd", "\x83\x00")
}

func TestLayerParser(t *testing.T) {
	var l websocket.Layer
	head := "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"
	parsertest.LayerParser(t, &l, head+"\x82\x00\x8a\x01x", websocket.LayerTypeWebSocket, websocket.LayerTypeWebSocket, websocket.LayerTypeWebSocket)
	if l.Name != websocket.Pong {
		t.Errorf("the last is %v", l.Name)
	}
}
