package parsers

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// A DecodingLayer is a pointer to L that gopacket can decode into and then keep
// as a layer of a packet.
type DecodingLayer[L any] interface {
	*L
	gopacket.Layer
	gopacket.DecodingLayer
}

// RegisterLayer registers a protocol's layer type with gopacket. number is from
// the range 1000 to 1999, which gopacket leaves to applications. What follows a
// message is decoded as its NextLayerType.
func RegisterLayer[L any, P DecodingLayer[L]](number int, name string) gopacket.LayerType {
	return gopacket.RegisterLayerType(number, gopacket.LayerTypeMetadata{
		Name: name,
		Decoder: gopacket.DecodeFunc(func(data []byte, p gopacket.PacketBuilder) error {
			l := P(new(L))
			if err := l.DecodeFromBytes(data, p); err != nil {
				return err
			}
			p.AddLayer(l)
			if len(l.LayerPayload()) == 0 {
				return nil
			}
			return p.NextDecoder(l.NextLayerType())
		}),
	})
}

// DecodeLayer takes the first message of data for a layer of messages that
// follow one another: base gets its bytes and those behind it, and m the message.
// The error is that of parse, which is ErrCut where the message is.
func DecodeLayer[M any](base *layers.BaseLayer, m *M, data []byte, df gopacket.DecodeFeedback, parse func([]byte) (M, int, error)) error {
	parsed, n, err := parse(data)
	if err != nil {
		if err == ErrCut {
			df.SetTruncated()
		}
		*base = layers.BaseLayer{Contents: data}
		return err
	}
	*base = layers.BaseLayer{Contents: data[:n], Payload: data[n:]}
	*m = parsed
	return nil
}

// NextLayer is the type of the layer behind one whose payload is given: next, or
// none where there are no bytes.
func NextLayer(payload []byte, next gopacket.LayerType) gopacket.LayerType {
	if len(payload) == 0 {
		return gopacket.LayerTypeZero
	}
	return next
}
