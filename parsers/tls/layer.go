package tls

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
)

// layerNumber is from the range 1000 to 1999, which gopacket leaves to
// applications. It is 1000 and the port of HTTPS.
const layerNumber = 1443

// LayerTypeTLS is the gopacket layer type of TLS. gopacket has one of its own,
// which fails for all of a segment where a record is cut.
var LayerTypeTLS = parsers.RegisterLayer[Layer](layerNumber, "TLS record")

// A Layer is one TLS record as a gopacket layer. A TCP segment with several gives
// as many layers. Records that straddle segments are decode errors here: gopacket's
// packets stand alone, and its reassembly is for whoever needs them.
//
// To have gopacket.NewPacket find TLS in TCP, call
//
//	layers.RegisterTCPPortLayerType(8883, tls.LayerTypeTLS)
//
// once, before decoding, and set DecodeStreamsAsDatagrams in its options.
type Layer struct {
	layers.BaseLayer // Contents is the record, Payload what follows it
	Record
}

var (
	_ gopacket.Layer         = (*Layer)(nil)
	_ gopacket.DecodingLayer = (*Layer)(nil)
)

// LayerType implements gopacket.Layer.
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeTLS }

// CanDecode implements gopacket.DecodingLayer.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeTLS }

// NextLayerType implements gopacket.DecodingLayer: more records follow while there
// are bytes.
func (l *Layer) NextLayerType() gopacket.LayerType {
	return parsers.NextLayer(l.Payload, LayerTypeTLS)
}

// DecodeFromBytes implements gopacket.DecodingLayer. The layer borrows data.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return parsers.DecodeLayer(&l.BaseLayer, &l.Record, data, df, Parse)
}
