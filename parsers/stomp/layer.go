package stomp

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
)

// layerNumber is from the range 1000 to 1999, which gopacket leaves to
// applications. It is 1000 and the last three digits of the protocol's port.
const layerNumber = 1613

// LayerTypeSTOMP is the gopacket layer type of STOMP.
var LayerTypeSTOMP = parsers.RegisterLayer[Layer](layerNumber, "STOMP")

// A Layer is one STOMP frame, or heart-beats, as a gopacket layer. A TCP segment
// with several frames gives as many layers. Frames that straddle segments are
// decode errors here: gopacket's packets stand alone, and its reassembly is for
// whoever needs them.
//
// To have gopacket.NewPacket find STOMP in TCP, call
//
//	layers.RegisterTCPPortLayerType(61613, stomp.LayerTypeSTOMP)
//
// once, before decoding, and set DecodeStreamsAsDatagrams in its options.
type Layer struct {
	layers.BaseLayer // Contents is the frame, Payload what follows it
	Message
}

var (
	_ gopacket.Layer         = (*Layer)(nil)
	_ gopacket.DecodingLayer = (*Layer)(nil)
)

// LayerType implements gopacket.Layer.
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeSTOMP }

// CanDecode implements gopacket.DecodingLayer.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeSTOMP }

// NextLayerType implements gopacket.DecodingLayer: more frames follow while
// there are bytes.
func (l *Layer) NextLayerType() gopacket.LayerType {
	return parsers.NextLayer(l.Payload, LayerTypeSTOMP)
}

// DecodeFromBytes implements gopacket.DecodingLayer. The layer borrows data.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return parsers.DecodeLayer(&l.BaseLayer, &l.Message, data, df, Parse)
}
