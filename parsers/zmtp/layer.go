package zmtp

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
)

// layerNumber is from the range 1000 to 1999, which gopacket leaves to
// applications. It is 1000 and the number of the protocol's RFC.
const layerNumber = 1037

// LayerTypeZMTP is the gopacket layer type of ZMTP.
var LayerTypeZMTP = parsers.RegisterLayer[Layer](layerNumber, "ZMTP")

// A Layer is one ZMTP greeting, command or message as a gopacket layer. A TCP
// segment with several gives as many layers. Messages that straddle segments, as
// greetings do, are decode errors here: gopacket's packets stand alone, and its
// reassembly is for whoever needs them.
//
// To have gopacket.NewPacket find ZMTP in TCP, call
//
//	layers.RegisterTCPPortLayerType(port, zmtp.LayerTypeZMTP)
//
// once, before decoding, and set DecodeStreamsAsDatagrams in its options.
type Layer struct {
	layers.BaseLayer // Contents is the message, Payload what follows it
	Unit

	// Subscriber says that the sender subscribes; see Parse.
	Subscriber bool
}

var (
	_ gopacket.Layer         = (*Layer)(nil)
	_ gopacket.DecodingLayer = (*Layer)(nil)
)

// LayerType implements gopacket.Layer.
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeZMTP }

// CanDecode implements gopacket.DecodingLayer.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeZMTP }

// NextLayerType implements gopacket.DecodingLayer: more messages follow while
// there are bytes.
func (l *Layer) NextLayerType() gopacket.LayerType {
	return parsers.NextLayer(l.Payload, LayerTypeZMTP)
}

// DecodeFromBytes implements gopacket.DecodingLayer. The layer borrows data.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	parse := func(b []byte) (Unit, int, error) { return Parse(b, l.Subscriber) }
	return parsers.DecodeLayer(&l.BaseLayer, &l.Unit, data, df, parse)
}
