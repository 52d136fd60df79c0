package seal

import (
	"bytes"
	"encoding/binary"

	"sheaf/parsers/tls"
)

const (
	typeClientHello = 1
	typeServerHello = 2

	messageHead = 4 // type(1) length(3), RFC 8446 section 4

	// helloSession is where the length of a hello's session id is in its message, behind
	// version and random (RFC 8446 sections 4.1.2 and 4.1.3).
	helloSession = messageHead + 2 + RandomLen
	maxSession   = 32 // bytes
)

// hello says whether p begins with a record of the handshake's first message (RFC 8446
// section 4.1).
func hello(p []byte) bool {
	return len(p) > HeadLen && p[0] == handshake && p[1] == 3 && p[2] <= 3 &&
		(p[HeadLen] == typeClientHello || p[HeadLen] == typeServerHello)
}

// messageLen returns the length that a message's head says, without the head.
func messageLen(message []byte) int {
	return int(message[1])<<16 | int(binary.BigEndian.Uint16(message[2:]))
}

// helloIn returns the hello of a type in b, which is a record with nothing else, and the
// hello's session id. Both are borrowed.
func helloIn(b []byte, kind byte) (message, session []byte, ok bool) {
	if len(b) <= HeadLen+helloSession || !hello(b) || b[HeadLen] != kind || len(b) != HeadLen+int(binary.BigEndian.Uint16(b[3:])) {
		return nil, nil, false
	}
	message = b[HeadLen:]
	session, ok = sessionOf(message)
	return message, session, ok && messageLen(message) == len(message)-messageHead
}

// sessionOf returns the session id of a hello.
func sessionOf(message []byte) (session []byte, ok bool) {
	if len(message) <= helloSession {
		return nil, false
	}
	session = message[helloSession+1:]
	n := int(message[helloSession])
	return session[:min(n, len(session))], n <= maxSession && n < len(session)
}

// AppendHello appends the opened payload of a segment, of the client's direction, to dst: it
// begins with so many bytes of its own. A payload that is a ClientHello is marked, so that the
// peer may refer to it. The bytes from at to end, where there are any, are a ticket: where the
// peer knows it, TicketNamed bytes take its place, and named is true. It reports false where
// neither is to be said.
func (c *Conn) AppendHello(dst, payload []byte, at, end int) (b []byte, prefix int, named, ok bool) {
	t := &c.table.room.texts
	w := writer{b: dst}
	message, _, marked := helloIn(payload, typeClientHello)
	if marked = marked && c.fromClient && len(message) <= maxText && !t.taken(message); marked {
		t.send(message)
		w.item(itemClient)
	}
	var name textName
	if at <= 1<<16-1 && end-at >= minText && end-at <= maxText {
		name = nameOf(payload[at:end])
		_, named = t.received[name]
	}
	switch {
	case !named && !marked:
		return dst, 0, false, false
	case !named:
		w.item(itemPlain)
		prefix = len(w.b) - len(dst)
		return append(w.b, payload...), prefix, false, true
	}
	w.sized(itemPlain, at, false)
	prefix = len(w.b) - len(dst)
	w.b = append(w.b, payload[:at]...)
	w.item(itemNamed)
	w.b = append(w.b, name[:]...)
	w.item(itemPlain)
	return append(w.b, payload[end:]...), prefix, true, true
}

// TicketNamed is what AppendHello writes in place of a ticket, bytes.
const TicketNamed = 1 + len(textName{}) + 1

// mark notes that what was sealed is a ClientHello, to which this end may refer.
func (s *Sealer) mark(payload []byte) bool {
	message, _, ok := helloIn(payload, typeClientHello)
	if !ok || len(message) > maxText {
		return false
	}
	s.room.texts.receive(message)
	s.client = append(s.client[:0:0], message...)
	return true
}

// answer writes a ServerHello that answers a ClientHello which the far end has: its session
// id is that one's (RFC 8446 section 4.1.3). It reports false where it does not.
func (o *Opener) answer(w *writer, record []byte) bool {
	c := o.conn
	message, session, ok := helloIn(record, typeServerHello)
	if client := c.In.client; !ok || c.fromClient || client == nil || !c.TLS13() {
		return false
	}
	name := nameOf(c.In.client)
	_, known := o.room.texts.received[name]
	_, _, retry, _ := tls.ServerHello(record)
	if own, _ := sessionOf(c.In.client); !known || retry || !bytes.Equal(own, session) {
		return false
	}
	o.opened, o.rest = true, 0
	o.messages.begin(c.suite, c.In.client, message)
	w.item(itemServer)
	w.b = append(w.b, name[:]...)
	o.room.record = appendSession(o.room.record[:0], record, nil)
	w.bytes(o.room.record, Piece{Type: handshake, Plain: true, Start: true})
	return true
}

// answer appends the ServerHello that comes next.
func (s *Sealer) answer(dst []byte, r *reader) []byte {
	t := s.room.texts.sent[readName(r)]
	if r.bad || t == nil || len(r.b) < HeadLen {
		r.bad = true
		return dst
	}
	record := r.bytes(HeadLen + int(binary.BigEndian.Uint16(r.b[3:])))
	_, empty, ok := helloIn(record, typeServerHello)
	session, client := sessionOf(t.bytes)
	if r.check(ok && client && t.bytes[0] == typeClientHello && len(empty) == 0); r.bad {
		return dst
	}
	from := len(dst)
	dst = appendSession(dst, record, session)
	_, suite, _, _ := tls.ServerHello(record)
	s.messages.begin(Suite(suite), t.bytes, dst[from+HeadLen:])
	return dst
}

// appendSession appends a record with a hello whose session id is another one.
func appendSession(dst, record, session []byte) []byte {
	const at = HeadLen + helloSession
	from, grown := len(dst), len(session)-int(record[at])
	dst = append(dst, record[:at]...)
	dst = append(dst, byte(len(session)))
	dst = append(dst, session...)
	dst = append(dst, record[at+1+int(record[at]):]...)
	b := dst[from:]
	binary.BigEndian.PutUint16(b[3:], uint16(len(record)-HeadLen+grown))
	binary.BigEndian.PutUint16(b[HeadLen+2:], uint16(len(record)-HeadLen-messageHead+grown)) // below 2^16, in a record
	return dst
}
