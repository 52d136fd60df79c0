package resp_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers/resp"
)

// tcpPacket is an IPv4 packet to the server.
func tcpPacket(payload string) []byte {
	ip := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolTCP, SrcIP: []byte{10, 0, 0, 2}, DstIP: []byte{10, 0, 0, 1}}
	tcp := &layers.TCP{SrcPort: 40000, DstPort: 6379, Seq: 1, Ack: 1, ACK: true, PSH: true, Window: 64}
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

// Any gopacket program can show RESP once its port has been named.
func ExampleLayer() {
	layers.RegisterTCPPortLayerType(6379, resp.LayerTypeRESP)

	data := tcpPacket("*3\r\n$7\r\nPUBLISH\r\n$6\r\nroom:1\r\n$4\r\n21.5\r\nPING\r\n")
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
	p := gopacket.NewPacket([]byte("$4\r\n21"), resp.LayerTypeRESP, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), resp.ErrShort) || !p.Metadata().Truncated {
		t.Errorf("cut message: %v", p)
	}
	p = gopacket.NewPacket([]byte("PUT / HTTP/1.1\r\n"), resp.LayerTypeRESP, gopacket.Default)
	if l := p.ErrorLayer(); l == nil || !errors.Is(l.Error(), resp.ErrMalformed) {
		t.Errorf("malformed message: %v", p)
	}
}

func TestLayerParser(t *testing.T) {
	var l resp.Layer
	parser := gopacket.NewDecodingLayerParser(resp.LayerTypeRESP, &l)
	var decoded []gopacket.LayerType
	if err := parser.DecodeLayers([]byte("+OK\r\n:1\r\n"), &decoded); err != nil {
		t.Fatal(err)
	}
	if len(decoded) != 2 || l.Name != resp.Integer || len(l.Payload) != 0 || l.LayerType() != resp.LayerTypeRESP {
		t.Errorf("decoded %v, last %v", decoded, l.Name)
	}
}
