package tls

import "sheaf/parsers"

// RecordSpan returns the span of n bytes of a record in a payload whose other records are
// opened. protected says that they are encrypted, start that they are the first.
func RecordSpan(id parsers.ProtocolID, contentType uint8, n int, protected, start bool) parsers.Span {
	sp := parsers.Span{
		Len: n, Protocol: id, Name: contentType, Class: parsers.ClassUrgent, Encrypted: protected,
		Key: parsers.MessageKey(id, contentType, nil, 0),
	}
	if protected {
		sp.Class = parsers.ClassData
	}
	if !start {
		sp.At = 1
	}
	return sp
}
