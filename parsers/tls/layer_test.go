package tls_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/parsertest"
	"sheaf/parsers/tls"
)

// Any gopacket program can show TLS records once their port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(8883, tls.LayerTypeTLS)

	data := parsertest.TCPPacket(8883, "\x14\x03\x03\x00\x01\x01"+"\x17\x03\x03\x00\x04\xa1\xb2\xc3\xd4")
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.DecodeOptions{DecodeStreamsAsDatagrams: true})
	for _, l := range packet.Layers() {
		if r, isTLS := l.(*tls.Layer); isTLS {
			fmt.Printf("%v, version %#04x, %d bytes: %x\n", r.Name, r.Version, r.Length, r.Fragment(r.Contents))
		}
	}
	// Output:
	// change_cipher_spec, version 0x0303, 6 bytes: 01
	// application_data, version 0x0303, 9 bytes: a1b2c3d4
}

func TestLayerErrors(t *testing.T) {
	parsertest.LayerErrors(t, tls.LayerTypeTLS, "\x17\x03\x03\x00\x04\xa1", "\x17\x03\x00\x00\x01a")
}

func TestLayerParser(t *testing.T) {
	var l tls.Layer
	parsertest.LayerParser(t, &l, "\x14\x03\x03\x00\x01\x01\x15\x03\x03\x00\x02\x01\x00", tls.LayerTypeTLS, tls.LayerTypeTLS)
	if l.Name != tls.Alert {
		t.Errorf("the last is %v", l.Name)
	}
}
