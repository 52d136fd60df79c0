package websocket

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"sheaf/parsers"
)

// layerNumber is from the range 1000 to 1999, which gopacket leaves to
// applications. It is 1000 and digits of the protocol's RFC.
const layerNumber = 1645

// LayerTypeWebSocket is the gopacket layer type of WebSocket.
var LayerTypeWebSocket = parsers.RegisterLayer[Layer](layerNumber, "WebSocket")

// A Layer is one WebSocket frame, or the HTTP head before the first, as a gopacket
// layer. A TCP segment with several gives as many layers. Frames that straddle
// segments are decode errors here: gopacket's packets stand alone, and its
// reassembly is for whoever needs them.
//
// To have gopacket.NewPacket find WebSocket in TCP, call
//
//	layers.RegisterTCPPortLayerType(9001, websocket.LayerTypeWebSocket)
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
func (l *Layer) LayerType() gopacket.LayerType { return LayerTypeWebSocket }

// CanDecode implements gopacket.DecodingLayer.
func (l *Layer) CanDecode() gopacket.LayerClass { return LayerTypeWebSocket }

// NextLayerType implements gopacket.DecodingLayer: more frames follow while
// there are bytes.
func (l *Layer) NextLayerType() gopacket.LayerType {
	return parsers.NextLayer(l.Payload, LayerTypeWebSocket)
}

// DecodeFromBytes implements gopacket.DecodingLayer. The layer borrows data.
func (l *Layer) DecodeFromBytes(data []byte, df gopacket.DecodeFeedback) error {
	return parsers.DecodeLayer(&l.BaseLayer, &l.Message, data, df, Parse)
}
