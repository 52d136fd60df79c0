package amqp

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
)

// layerNumber is from the range 1000 to 1999, which gopacket leaves to
// applications. It stands for 0-9-1: the port is not in the range.
const layerNumber = 1091

// LayerTypeAMQP is the gopacket layer type of AMQP.
var LayerTypeAMQP = parsers.RegisterLayer[Layer](layerNumber, "AMQP")

// A Layer is one AMQP frame as a gopacket layer. A TCP segment with several
// frames gives as many layers. Frames that straddle segments are decode errors
// here: gopacket's packets stand alone, and its reassembly is for whoever
// needs them.
//
// To have gopacket.NewPacket find AMQP in TCP, call
//
//	layers.RegisterTCPPortLayerType(5672, amqp.LayerTypeAMQP)
//
// once, before decoding, and set DecodeStreamsAsDatagrams in its options.
type Layer struct {
	layers.BaseLayer // Contents is the frame, Payload what follows it
	Frame
}

var (
	_ gopacket.Layer         = (*Layer)(nil)
	_ gopacket.DecodingLayer = (*Layer)(nil)
)

// LayerType implements gopacket.Layer.
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeAMQP }

// CanDecode implements gopacket.DecodingLayer.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeAMQP }

// NextLayerType implements gopacket.DecodingLayer: more frames follow while there
// are bytes.
func (l *Layer) NextLayerType() gopacket.LayerType {
	return parsers.NextLayer(l.Payload, LayerTypeAMQP)
}

// DecodeFromBytes implements gopacket.DecodingLayer. The layer borrows data.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return parsers.DecodeLayer(&l.BaseLayer, &l.Frame, data, df, Parse)
}
