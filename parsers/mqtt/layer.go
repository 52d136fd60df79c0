package mqtt

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
)

// layerNumber is from the range 1000 to 1999, which gopacket leaves to
// applications. It is the protocol's port.
const layerNumber = 1883

// LayerTypeMQTT is the gopacket layer type of MQTT.
var LayerTypeMQTT = parsers.RegisterLayer[Layer](layerNumber, "MQTT")

// A Layer is one MQTT message as a gopacket layer. A TCP segment with several
// messages gives as many layers. Messages that straddle segments are decode
// errors here: gopacket's packets stand alone, and its reassembly is for whoever
// needs them.
//
// To have gopacket.NewPacket find MQTT in TCP, call
//
//	layers.RegisterTCPPortLayerType(1883, mqtt.LayerTypeMQTT)
//
// once, before decoding, and set DecodeStreamsAsDatagrams in its options.
type Layer struct {
	layers.BaseLayer // Contents is the message, Payload what follows it
	Message

	// Connection is the protocol level to read by, 0 when unknown; see Parse.
	Connection uint8
}

var (
	_ gopacket.Layer         = (*Layer)(nil)
	_ gopacket.DecodingLayer = (*Layer)(nil)
)

// LayerType implements gopacket.Layer.
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeMQTT }

// CanDecode implements gopacket.DecodingLayer.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeMQTT }

// NextLayerType implements gopacket.DecodingLayer: more messages follow while
// there are bytes.
func (l *Layer) NextLayerType() gopacket.LayerType {
	return parsers.NextLayer(l.Payload, LayerTypeMQTT)
}

// DecodeFromBytes implements gopacket.DecodingLayer. The layer borrows data.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	parse := func(b []byte) (Message, int, error) { return Parse(b, l.Connection) }
	return parsers.DecodeLayer(&l.BaseLayer, &l.Message, data, df, parse)
}
