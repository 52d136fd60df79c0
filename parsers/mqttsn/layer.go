package mqttsn

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
)

// layerNumber is from the range 1000 to 1999, which gopacket leaves to
// applications. It is one of the protocol's usual ports.
const layerNumber = 1884

// LayerTypeMQTTSN is the gopacket layer type of MQTT-SN.
var LayerTypeMQTTSN = parsers.RegisterLayer[Layer](layerNumber, "MQTT-SN")

// A Layer is one MQTT-SN message as a gopacket layer.
//
// To have gopacket.NewPacket find MQTT-SN in UDP, call
//
//	layers.RegisterUDPPortLayerType(1884, mqttsn.LayerTypeMQTTSN)
//
// once, before decoding.
type Layer struct {
	layers.BaseLayer // Contents is the message up to its data
	Message
}

var (
	_ gopacket.Layer         = (*Layer)(nil)
	_ gopacket.DecodingLayer = (*Layer)(nil)
)

// LayerType implements gopacket.Layer.
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeMQTTSN }

// CanDecode implements gopacket.DecodingLayer.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeMQTTSN }

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
