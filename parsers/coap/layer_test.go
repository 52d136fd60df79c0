package coap_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
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
	p := gopacket.NewPacket([]byte("\x42\x03\x00"), coap.LayerTypeCoAP, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), parsers.ErrMalformed) {
		t.Errorf("malformed message: %v", p)
	}
}

func TestLayerParser(t *testing.T) {
	var l coap.Layer
	var payload gopacket.Payload
	parser := gopacket.NewDecodingLayerParser(coap.LayerTypeCoAP, &l, &payload)
	var decoded []gopacket.LayerType
	for data, want := range map[string]int{"\x60\x00\x00\x05": 1, "\x60\x45\x00\x05\xffbody": 2} {
		if err := parser.DecodeLayers([]byte(data), &decoded); err != nil {
			t.Fatal(err)
		}
		if len(decoded) != want || l.ID != 5 || l.LayerType() != coap.LayerTypeCoAP {
			t.Errorf("decoded %v", decoded)
		}
	}
}
