package zmtp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/zmtp"
)

// tcpPacket is an IPv4 packet to the publisher.
func tcpPacket(payload string) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{10, 0, 0, 2}, DstIP: []byte{10, 0, 0, 1}}
	tcp := &layers.TCP{SrcPort: 40000, DstPort: 5556, Seq: 1, Ack: 1, ACK: true, PSH: true, Window: 64}
	if err := tcp.SetNetworkLayerForChecksum(ip); err != nil {
		panic(err)
	}
	buf := gopacket.NewSerializeBuffer()
	opts := gopacket.SerializeOptions{FixLengths: true, ComputeChecksums: true}
	if err := gopacket.SerializeLayers(buf, opts, ip, tcp, gopacket.Payload(payload)); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

// Any gopacket program can show ZMTP once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(5556, zmtp.LayerTypeZMTP)

	data := tcpPacket("\x04\x0b\x09SUBSCRIBEw" + "\x01\x07weather\x00\x0241")
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
	p := gopacket.NewPacket([]byte("\x01\x07weat"), zmtp.LayerTypeZMTP, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), zmtp.ErrShort) || !p.Metadata().Truncated {
		t.Errorf("cut message: %v", p)
	}
	p = gopacket.NewPacket([]byte("\x09\x07weather"), zmtp.LayerTypeZMTP, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), zmtp.ErrMalformed) {
		t.Errorf("malformed message: %v", p)
	}
}

func TestLayerParser(t *testing.T) {
	var l zmtp.Layer
	parser := gopacket.NewDecodingLayerParser(zmtp.LayerTypeZMTP, &l)
	var decoded []gopacket.LayerType
	if err := parser.DecodeLayers([]byte("\x00\x01a\x00\x01b"), &decoded); err != nil {
		t.Fatal(err)
	}
	if len(decoded) != 2 || l.Name != zmtp.Message || len(l.Payload) != 0 || l.LayerType() != zmtp.LayerTypeZMTP {
		t.Errorf("decoded %v, last %v", decoded, l.Name)
	}
}
