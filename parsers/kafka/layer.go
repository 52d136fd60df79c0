package kafka

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
)

// layerNumber is from the range 1000 to 1999, which gopacket leaves to
// applications. It is 1000 and the last digits of the protocol's port.
const layerNumber = 1092

// LayerTypeKafka is the gopacket layer type of Kafka.
var LayerTypeKafka = parsers.RegisterLayer[Layer](layerNumber, "Kafka")

// A Layer is one Kafka request or response as a gopacket layer. A TCP segment
// with several gives as many layers. Messages that straddle segments are decode
// errors here: gopacket's packets stand alone, and its reassembly is for whoever
// needs them.
//
// To have gopacket.NewPacket find Kafka in TCP, call
//
//	layers.RegisterTCPPortLayerType(9092, kafka.LayerTypeKafka)
//
// once, before decoding, and set DecodeStreamsAsDatagrams in its options.
type Layer struct {
	layers.BaseLayer // Contents is the message, Payload what follows it
	Message

	// FromBroker says that the message is a response; see Parse.
	FromBroker bool
}

var (
	_ gopacket.Layer         = (*Layer)(nil)
	_ gopacket.DecodingLayer = (*Layer)(nil)
)

// LayerType implements gopacket.Layer.
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeKafka }

// CanDecode implements gopacket.DecodingLayer.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeKafka }

// NextLayerType implements gopacket.DecodingLayer: more messages follow while
// there are bytes.
func (l *Layer) NextLayerType() gopacket.LayerType {
	return parsers.NextLayer(l.Payload, LayerTypeKafka)
}

// DecodeFromBytes implements gopacket.DecodingLayer. The layer borrows data.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	parse := func(b []byte) (Message, int, error) { return Parse(b, l.FromBroker) }
	return parsers.DecodeLayer(&l.BaseLayer, &l.Message, data, df, parse)
}
