package amqp10

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
)

// layerNumber is from the range 1000 to 1999, which gopacket leaves to
// applications. It stands for 1.0: the port is not in the range.
const layerNumber = 1100

// LayerTypeAMQP10 is the gopacket layer type of AMQP 1.0.
var LayerTypeAMQP10 = parsers.RegisterLayer[Layer](layerNumber, "AMQP10")

// A Layer is one AMQP 1.0 frame as a gopacket layer. A TCP segment with several
// frames gives as many layers. Frames that straddle segments are decode errors
// here: gopacket's packets stand alone, and its reassembly is for whoever
// needs them.
//
// To have gopacket.NewPacket find AMQP 1.0 in TCP, call
//
//	layers.RegisterTCPPortLayerType(5672, amqp10.LayerTypeAMQP10)
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
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeAMQP10 }

// CanDecode implements gopacket.DecodingLayer.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeAMQP10 }

// NextLayerType implements gopacket.DecodingLayer: more frames follow while there
// are bytes.
func (l *Layer) NextLayerType() gopacket.LayerType {
	return parsers.NextLayer(l.Payload, LayerTypeAMQP10)
}

// DecodeFromBytes implements gopacket.DecodingLayer. The layer borrows data.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return parsers.DecodeLayer(&l.BaseLayer, &l.Frame, data, df, Parse)
}
