package tls

import "sheaf/parsers"

// RecordSpan returns the span of a record's bytes, or of some of them, in a payload whose
// other records are opened. plain says that b are those of the record as it is, else they
// are what is in it; start, that they are the first.
func RecordSpan(id parsers.ProtocolID, contentType uint8, b []byte, plain, start bool) parsers.Span {
	name := Name(contentType)
	at := 0
	if plain && start {
		at = min(headSize, len(b))
	}
	sp := parsers.Span{
		Len: len(b), Protocol: id, Name: contentType, Class: parsers.ClassUrgent, Body: at,
		Encrypted: plain && name == ApplicationData,
	}
	if sp.Encrypted {
		sp.Class = parsers.ClassData
	}
	if !start {
		sp.At = 1
	}
	sp.Key = messageKey(id, name, b[at:], !sp.Encrypted && start)
	return sp
}

// messageKey returns what records have in common that may be compared: their type, and of
// handshakes the type of the message that begins them (RFC 8446 section 4).
func messageKey(id parsers.ProtocolID, name Name, b []byte, first bool) uint64 {
	if first && name == Handshake && len(b) > 0 {
		return parsers.MessageKey(id, uint8(name), b[:1], 1)
	}
	return parsers.MessageKey(id, uint8(name), nil, 0)
}
