package coap_test

import (
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/coap"
	"sheaf/parsers/parsertest"
)

// Any gopacket program can show CoAP once its port has been named.
func ExampleLayer() {
	layers.RegisterUDPPortLayerType(5683, coap.LayerTypeCoAP)

	data := parsertest.UDPPacket(5683, "\x42\x03\x00\x05to\xb4room\x03one\xff21.5")
	packet := gopacket.NewPacket(data, layers.LayerTypeIPv4, gopacket.Default)
	m, isCoAP := packet.Layer(coap.LayerTypeCoAP).(*coap.Layer)
	if !isCoAP {
		fmt.Println(packet)
		return
	}
	path, _ := m.Option(11)
	fmt.Printf("%v %v %d, path begins %q, body %q\n", m.Type, m.Name, m.ID, path.Bytes(m.Contents), m.Payload)
	// Output:
	// CON PUT 5, path begins "room", body "21.5"
}

func TestLayerErrors(t *testing.T) {
	parsertest.LayerErrors(t, coap.LayerTypeCoAP, "", "\x42\x03\x00")
}

func TestLayerParser(t *testing.T) {
	for data, want := range map[string][]gopacket.LayerType{
		"\x60\x00\x00\x05":         {coap.LayerTypeCoAP},
		"\x60\x45\x00\x05\xffbody": {coap.LayerTypeCoAP, gopacket.LayerTypePayload},
	} {
		var l coap.Layer
		if parsertest.LayerParser(t, &l, data, want...); l.ID != 5 {
			t.Errorf("%q: ID %d", data, l.ID)
		}
	}
}
