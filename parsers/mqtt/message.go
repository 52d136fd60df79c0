package mqtt

import (
	"encoding/binary"

	"sheaf/parsers"
)

// A FieldKind says what a Field of a message is.
type FieldKind uint8

// The fields. Strings and binary data are without their length.
const (
	FieldProtocolName FieldKind = iota + 1 // CONNECT
	FieldLevel
	FieldConnectFlags
	FieldKeepAlive
	FieldClientID
	FieldWillProperty
	FieldWillTopic
	FieldWillPayload
	FieldUser
	FieldPassword
	FieldAckFlags // CONNACK
	FieldReason   // return code, reason code, or granted QoS
	FieldPacketID
	FieldTopic
	FieldFilter  // SUBSCRIBE, UNSUBSCRIBE
	FieldOptions // of the filter before it
	FieldProperty
	FieldPayload
)

// A Field is a place in a message.
type Field struct {
	Kind     FieldKind
	Property uint8 // the identifier of a FieldProperty or FieldWillProperty
	Off, Len int   // from the message's first byte
}

// Bytes returns the field's bytes in the message it is of, which it borrows.
func (f Field) Bytes(message []byte) []byte { return message[f.Off : f.Off+f.Len] }

// A Message is one MQTT control packet taken apart.
type Message struct {
	Name    Name
	Flags   uint8 // low half of the first byte
	Version uint8 // by which the message was read: 3, 4 (which is 3.1.1) or 5
	Length  int   // bytes of the whole message
	Fields  []Field
}

// QoS returns the quality of service of a PUBLISH.
func (m *Message) QoS() uint8 { return m.Flags >> 1 & 3 }

// Dup says whether a PUBLISH is marked as sent before.
func (m *Message) Dup() bool { return m.Flags&8 != 0 }

// Retain says whether a PUBLISH is marked as retained.
func (m *Message) Retain() bool { return m.Flags&1 != 0 }

// Field returns the first field of a kind.
func (m *Message) Field(kind FieldKind) (Field, bool) {
	for _, f := range m.Fields {
		if f.Kind == kind {
			return f, true
		}
	}
	return Field{}, false
}

// Parse takes apart the message that b begins with and returns its size. version
// is the connection's protocol level (3, 4, 5), or 0 when it is not known, in
// which case messages whose form leaves it open are read as 3.1.1, and a
// SUBSCRIBE or UNSUBSCRIBE that is none as version 5. The error is parsers.ErrCut when
// the message goes on after b, else a *parsers.Error.
func Parse(b []byte, version uint8) (Message, int, error) {
	var f front
	if bad := parseFront(b, version, &f); bad != ok {
		name := Name(0)
		if len(b) > 0 {
			name = Name(b[0] >> 4)
		}
		return Message{}, 0, bad.err(name, f.body)
	}
	if len(b) < f.size {
		return Message{}, 0, parsers.ErrCut
	}
	b = b[:f.size]
	if f.version != 0 {
		version = f.version
	}
	r := reader{b: b, at: f.fixed}
	read := r.message(&f, version)
	if r.bad != ok {
		return Message{}, 0, r.bad.err(f.name, r.at)
	}
	return Message{Name: f.name, Flags: f.flags, Version: read, Length: f.size, Fields: r.fields}, f.size, nil
}

// A reader walks over a message and notes its fields. After a fault it stays
// where it is.
type reader struct {
	b      []byte
	at     int
	fields []Field
	quiet  bool // notes no fields
	bad    fault
}

// message reads everything after the fixed header, and returns the version by
// which it did.
func (r *reader) message(f *front, version uint8) uint8 {
	if version != 0 {
		r.variable(f, version)
		return version
	}
	r.variable(f, 4)
	if r.bad != ok && (f.name == SUBSCRIBE || f.name == UNSUBSCRIBE) {
		again := reader{b: r.b, at: f.fixed, fields: r.fields[:0], quiet: r.quiet}
		if again.variable(f, 5); again.bad == ok {
			*r = again
			return 5
		}
	}
	return 4
}

func (r *reader) variable(f *front, version uint8) {
	v5 := version == 5
	switch f.name {
	case CONNECT:
		r.connect(version)
	case CONNACK: // 3.2
		r.bytes(FieldAckFlags, 1)
		r.bytes(FieldReason, 1)
		if v5 {
			r.properties(FieldProperty, f.name)
		}
	case PUBLISH: // 3.3
		at := r.at
		r.text(FieldTopic)
		if r.bad == ok && !noWildcards(r.b[at+2:r.at]) {
			r.bad = faultTopicWildcard
		}
		if f.id > 0 {
			r.identifier()
		}
		if v5 {
			r.properties(FieldProperty, f.name)
		}
		r.bytes(FieldPayload, len(r.b)-r.at)
	case PUBACK, PUBREC, PUBREL, PUBCOMP: // 3.4 to 3.7
		r.identifier()
		if v5 {
			r.reasonAndProperties(f.name)
		}
	case SUBSCRIBE, UNSUBSCRIBE: // 3.8, 3.10
		r.identifier()
		if v5 {
			r.properties(FieldProperty, f.name)
		}
		r.filters(f.name, v5)
	case SUBACK, UNSUBACK: // 3.9, 3.11
		r.identifier()
		if v5 {
			r.properties(FieldProperty, f.name)
		}
		for r.bad == ok && r.at < len(r.b) && (v5 || f.name == SUBACK) {
			if c := r.b[r.at]; !v5 && c > 2 && c != 0x80 { // [MQTT-3.9.3-2]
				r.bad = faultReason
			}
			r.bytes(FieldReason, 1)
		}
	case DISCONNECT, AUTH: // 3.14, 3.15
		if v5 {
			r.reasonAndProperties(f.name)
		}
	}
	if r.bad == ok && r.at != len(r.b) {
		r.bad = faultTooLong
	}
}

// connect reads a CONNECT (3.1).
func (r *reader) connect(version uint8) {
	r.text(FieldProtocolName)
	r.bytes(FieldLevel, 1)
	r.bytes(FieldConnectFlags, 1)
	if r.bad != ok {
		return
	}
	flags := r.b[r.at-1]
	hasWill, hasUser, hasPassword := flags&0x04 != 0, flags&0x80 != 0, flags&0x40 != 0
	switch willFlags := flags & 0x38; {
	case flags&1 != 0 && version > 3, // [MQTT-3.1.2-3]
		!hasWill && willFlags != 0 && version > 3, // [MQTT-3.1.2-11], [MQTT-3.1.2-13]
		flags>>3&3 == 3,                         // [MQTT-3.1.2-12]
		hasPassword && !hasUser && version == 4: // 3.1.1, [MQTT-3.1.2-22]
		r.bad = faultConnectFlags
		return
	}
	r.bytes(FieldKeepAlive, 2)
	if version == 5 {
		r.properties(FieldProperty, CONNECT)
	}
	r.text(FieldClientID)
	if hasWill {
		if version == 5 {
			r.properties(FieldWillProperty, will)
		}
		r.text(FieldWillTopic)
		r.binary(FieldWillPayload)
	}
	// In 3.1 the strings may be missing although the flags announce them.
	if hasUser && (version > 3 || r.at < len(r.b)) {
		r.text(FieldUser)
	}
	if hasPassword && (version > 3 || r.at < len(r.b)) {
		r.binary(FieldPassword)
	}
}

// filters reads the topic filters of a SUBSCRIBE or UNSUBSCRIBE, of which there
// is at least one [MQTT-3.8.3-2], [MQTT-3.10.3-2].
func (r *reader) filters(name Name, v5 bool) {
	for first := true; r.bad == ok && (first || r.at < len(r.b)); first = false {
		at := r.at
		r.text(FieldFilter)
		if r.bad == ok && r.at-at == 2 { // [MQTT-4.7.3-1]
			r.bad = faultTooShort
		}
		if name == UNSUBSCRIBE {
			continue
		}
		r.bytes(FieldOptions, 1)
		if r.bad != ok {
			return
		}
		// [MQTT-3.8.3-5]; 3.1.1 has but the QoS.
		if o := r.b[r.at-1]; o&3 == 3 || v5 && (o&0xc0 != 0 || o&0x30 == 0x30) || !v5 && o > 2 {
			r.bad = faultOptions
		}
	}
}

// reasonAndProperties reads the end of a version 5 message, where either may be
// left out (3.4.2.1).
func (r *reader) reasonAndProperties(name Name) {
	if r.at < len(r.b) {
		r.bytes(FieldReason, 1)
	}
	if r.at < len(r.b) {
		r.properties(FieldProperty, name)
	}
}

// properties reads properties (2.2.2) that stand in the given place.
func (r *reader) properties(kind FieldKind, place Name) {
	if r.bad != ok {
		return
	}
	length, n := uvarint(r.b[r.at:])
	if n <= 0 || r.at+n+length > len(r.b) {
		r.bad = faultPropertyLength
		return
	}
	r.at += n
	end := r.at + length
	var seen uint64
	for r.at < end {
		size, bad := propertySize(r.b[r.at:end])
		if bad != ok {
			r.bad = bad
			return
		}
		id := r.b[r.at]
		switch {
		case properties[id].places&(1<<place) == 0:
			r.bad = faultPropertyPlace
			return
		case seen&(1<<id) != 0 && id != propUser && (id != propSubscriptionID || place != PUBLISH):
			r.bad = faultPropertyTwice
			return
		}
		seen |= 1 << id
		r.note(Field{Kind: kind, Property: id, Off: r.at + 1, Len: size - 1})
		r.at += size
	}
}

// identifier reads a packet identifier (2.2.1).
func (r *reader) identifier() { r.bytes(FieldPacketID, 2) }

// bytes reads a field of n bytes.
func (r *reader) bytes(kind FieldKind, n int) {
	if r.bad != ok {
		return
	}
	if n < 0 || len(r.b)-r.at < n {
		r.bad = faultTooShort
		return
	}
	r.note(Field{Kind: kind, Off: r.at, Len: n})
	r.at += n
}

func (r *reader) note(f Field) {
	if !r.quiet {
		r.fields = append(r.fields, f)
	}
}

// binary reads bytes that have their length in front (1.5.6).
func (r *reader) binary(kind FieldKind) {
	if r.bad != ok {
		return
	}
	if len(r.b)-r.at < 2 {
		r.bad = faultTooShort
		return
	}
	n := int(binary.BigEndian.Uint16(r.b[r.at:]))
	r.at += 2
	r.bytes(kind, n)
}

// text reads a UTF-8 string (1.5.4).
func (r *reader) text(kind FieldKind) {
	at := r.at
	r.binary(kind)
	if r.bad == ok && !validText(r.b[at+2:r.at], false) {
		r.bad = faultText
	}
}

func noWildcards(topic []byte) bool {
	for _, c := range topic {
		if c == '+' || c == '#' {
			return false
		}
	}
	return true
}
