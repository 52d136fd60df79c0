package zmtp_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/parsertest"
	"sheaf/parsers/zmtp"
)

// Any gopacket program can show ZMTP once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(5556, zmtp.LayerTypeZMTP)

	data := parsertest.TCPPacket(5556, "\x04\x0b\x09SUBSCRIBEw"+"\x01\x07weather\x00\x0241")
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true})
	for _, l := range packet.Layers() {
		if m, isZMTP := l.(*zmtp.Layer); isZMTP {
			fmt.Printf("%v, %d bytes", m.Name, m.Length)
			for _, f := range m.Frames {
				fmt.Printf(", frame %q", f.Bytes(m.Contents))
			}
			fmt.Println()
		}
	}
	// Output:
	// SUBSCRIBE, 13 bytes, frame "\tSUBSCRIBEw"
	// MESSAGE, 13 bytes, frame "weather", frame "41"
}

func TestLayerErrors(t *testing.T) {
	parsertest.LayerErrors(t, zmtp.LayerTypeZMTP, "\x01\x07weat", "\x09\x07weather")
}

func TestLayerParser(t *testing.T) {
	var l zmtp.Layer
	parsertest.LayerParser(t, &l, "\x00\x01a\x00\x01b", zmtp.LayerTypeZMTP, zmtp.LayerTypeZMTP)
	if l.Name != zmtp.Message {
		t.Errorf("the last is %v", l.Name)
	}
}
