package coap

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
)

// layerNumber is from the range 1000 to 1999, which gopacket leaves to
// applications. It is 1000 and the last three digits of the protocol's port.
const layerNumber = 1683

// LayerTypeCoAP is the gopacket layer type of CoAP.
var LayerTypeCoAP = parsers.RegisterLayer[Layer](layerNumber, "CoAP")

// A Layer is one CoAP message as a gopacket layer.
//
// To have gopacket.NewPacket find CoAP in UDP, call
//
//	layers.RegisterUDPPortLayerType(5683, coap.LayerTypeCoAP)
//
// once, before decoding.
type Layer struct {
	layers.BaseLayer // Contents is the message up to its payload, with the marker
	Message
}

var (
	_ gopacket.Layer         = (*Layer)(nil)
	_ gopacket.DecodingLayer = (*Layer)(nil)
)

// LayerType implements gopacket.Layer.
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeCoAP }

// CanDecode implements gopacket.DecodingLayer.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeCoAP }

// NextLayerType implements gopacket.DecodingLayer.
func (l *Layer) NextLayerType() gopacket.LayerType {
	return parsers.NextLayer(l.Payload, gopacket.LayerTypePayload)
}

// DecodeFromBytes implements gopacket.DecodingLayer. The layer borrows data.
func (l *Layer) DecodeFromBytes(data []byte, _ gopacket.DecodeFeedback) error {
	m, err := Parse(data)
	if err != nil {
		l.BaseLayer = layers.BaseLayer{Contents: data}
		return err
	}
	l.BaseLayer = layers.BaseLayer{Contents: data[:m.Body], Payload: data[m.Body:]}
	l.Message = m
	return nil
}
