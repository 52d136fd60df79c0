package mqttsn

import "sheaf/parsers"

// How much text a CONNECT and a REGISTER must have to be beyond doubt, beside
// their numbers, which all have to be right.
const (
	connectText  = 4
	registerText = 6
)

// Probe judges whether a datagram is an MQTT-SN message; see parsers.Protocol.
// Beyond doubt are a CONNECT, and a REGISTER of a client, whose topic ID is 0.
func Probe(datagram []byte) parsers.Confidence {
	var f front
	if parseFront(datagram, &f) != ok {
		return parsers.None
	}
	strong := false
	switch f.name {
	case CONNECT:
		strong = f.flags&^(flagWill|flagClean) == 0 && f.text.len >= connectText
	case REGISTER:
		strong = datagram[f.topic] == 0 && datagram[f.topic+1] == 0 && f.text.len >= registerText
	}
	if strong && printable(f.text.of(datagram)) {
		return parsers.Strong
	}
	return parsers.Weak
}

// printable says whether bytes are text without control characters.
func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}
