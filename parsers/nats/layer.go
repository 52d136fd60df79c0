package nats

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
)

// layerNumber is from the range 1000 to 1999, which gopacket leaves to
// applications. It is 1000 and the last three digits of the protocol's port.
const layerNumber = 1222

// LayerTypeNATS is the gopacket layer type of NATS.
var LayerTypeNATS = parsers.RegisterLayer[Layer](layerNumber, "NATS")

// A Layer is one NATS message as a gopacket layer. A TCP segment with several
// messages gives as many layers. Messages that straddle segments are decode
// errors here: gopacket's packets stand alone, and its reassembly is for whoever
// needs them.
//
// To have gopacket.NewPacket find NATS in TCP, call
//
//	layers.RegisterTCPPortLayerType(4222, nats.LayerTypeNATS)
//
// once, before decoding, and set DecodeStreamsAsDatagrams in its options.
type Layer struct {
	layers.BaseLayer // Contents is the message, Payload what follows it
	Message
}

var (
	_ gopacket.Layer         = (*Layer)(nil)
	_ gopacket.DecodingLayer = (*Layer)(nil)
)

// LayerType implements gopacket.Layer.
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeNATS }

// CanDecode implements gopacket.DecodingLayer.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeNATS }

// NextLayerType implements gopacket.DecodingLayer: more messages follow while
// there are bytes.
func (l *Layer) NextLayerType() gopacket.LayerType {
	return parsers.NextLayer(l.Payload, LayerTypeNATS)
}

// DecodeFromBytes implements gopacket.DecodingLayer. The layer borrows data.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return parsers.DecodeLayer(&l.BaseLayer, &l.Message, data, df, Parse)
}
