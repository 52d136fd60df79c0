package tls

import "sheaf/parsers"

// Handshake messages are mostly the same for all connections of a server, but for fields
// that are random: each is a span of its own, that nobody compares with anything, so that
// what is between them is found again as it is (RFC 8446 section 4, RFC 5246 section 7.4).
//
//	ClientHello  01 length(3) 0303 | random | length | session id | suites ... | key share | ...

// A Dissector cuts the handshake messages of one direction into such fields. Its zero value
// is at the beginning of a message. What does not parse is cut in odd places, and is no
// worse for it.
type Dissector struct {
	TLS13 bool // tickets have the form of TLS 1.3
	// Ticket is where the last Cut found a ticket with which a client resumes a session,
	// from its first byte to its end, of the bytes that it was given; 0 and 0 where it
	// found none that is whole.
	Ticket [2]int

	message byte   // its type
	left    int    // bytes of it behind its head still to come
	ext     int    // of which are of an extension
	at      int    // bytes of it that were seen
	index   byte   // of its next span
	field   field  // the one that is passing, or passed last
	rest    int    // bytes of it still to come
	number  uint32 // its first four bytes
	behind  int    // bytes of a ticket behind its key's name
}

// Types of handshake messages.
const (
	typeClientHello       = 1
	typeServerHello       = 2
	typeNewSessionTicket  = 4
	typeServerKeyExchange = 12
	typeCertificateVerify = 15
	typeClientKeyExchange = 16
	typeFinished          = 20
)

// Extensions whose content is random (RFC 8446 section 4.2, RFC 5077 section 3.2).
const (
	extSessionTicket = 35
	extPreSharedKey  = 41
	extKeyShare      = 51
)

// A field is a part of a message that is read at once.
type field uint8

const (
	fieldNone field = iota
	fieldHead       // type and length of a message
	fieldVersion
	fieldRandom
	fieldSessionLen
	fieldSession
	fieldSuitesLen
	fieldSuites
	fieldMethodsLen
	fieldMethods // or, of a server, suite and method
	fieldExtsLen
	fieldExtHead
	fieldExt // one that is not random, or the rest of one; from here to fieldTicket12 what an extension has
	fieldSharesLen
	fieldShareHead
	fieldShare
	fieldIdentityHead // the lengths of all identities and of the first
	fieldIdentity     // and its age
	fieldBinderHead
	fieldBinder
	fieldTicket12 // session_ticket
	fieldLifetime // of a ticket
	fieldAge
	fieldNonceLen
	fieldNonce
	fieldTicketLen
	fieldTicketKey
	fieldTicket
	fieldCurve
	fieldPointLen
	fieldPoint
	fieldScheme
	fieldSignature
	fieldVerify // all of a Finished
	fieldRest   // the rest of a message
	numFields
)

// random says of which fields nobody can tell what is in them.
var random = [numFields]bool{
	fieldRandom: true, fieldSession: true, fieldShare: true, fieldIdentity: true, fieldBinder: true,
	fieldTicket12: true, fieldAge: true, fieldTicket: true, fieldPoint: true, fieldSignature: true, fieldVerify: true,
}

// A step is a field that follows another, and how many bytes it has: so many, or as many
// as the field before it says in its last byte or its last two.
type step struct {
	field field
	bytes int
}

const (
	said1  = -1
	said2  = -2
	behind = -3 // as many as are left of a ticket
)

// ticketKeyLen is how long the name of the key is that a ticket begins with, the same for all
// that a server gives out for hours, as RFC 5077 section 4 recommends and OpenSSL does. Where
// there is none, in crypto/tls, it costs a byte or two to look for one.
const ticketKeyLen = 16

// steps are the fields that follow always.
var steps = [numFields]step{
	fieldVersion:      {fieldRandom, RandomLen},
	fieldRandom:       {fieldSessionLen, 1},
	fieldSessionLen:   {fieldSession, said1},
	fieldSuitesLen:    {fieldSuites, said2},
	fieldSuites:       {fieldMethodsLen, 1},
	fieldMethodsLen:   {fieldMethods, said1},
	fieldMethods:      {fieldExtsLen, 2},
	fieldExtsLen:      {fieldExtHead, 4},
	fieldSharesLen:    {fieldShareHead, 4},
	fieldShareHead:    {fieldShare, said2},
	fieldShare:        {fieldShareHead, 4},
	fieldIdentityHead: {fieldIdentity, said2},
	fieldIdentity:     {fieldBinderHead, 3},
	fieldBinderHead:   {fieldBinder, said1},
	fieldAge:          {fieldNonceLen, 1},
	fieldNonceLen:     {fieldNonce, said1},
	fieldNonce:        {fieldTicketLen, 2},
	fieldTicketLen:    {fieldTicketKey, said2},
	fieldTicketKey:    {fieldTicket, behind},
	fieldCurve:        {fieldPointLen, 1},
	fieldPointLen:     {fieldPoint, said1},
	fieldPoint:        {fieldScheme, 4},
	fieldScheme:       {fieldSignature, said2},
}

const ageLen = 4 // behind a ticket's identity, RFC 8446 section 4.2.11

const handshakeHead = 4 // type(1) length(3), RFC 8446 section 4

// Cut appends the spans of the next bytes of the messages to dst. id is TLS's number.
func (d *Dissector) Cut(id parsers.ProtocolID, b []byte, dst []parsers.Span) []parsers.Span {
	first, all := len(dst), len(b)
	d.Ticket = [2]int{}
	for len(b) > 0 {
		for d.rest == 0 {
			d.next()
			if at := all - len(b); d.field == fieldIdentity && d.rest > ageLen && d.rest <= len(b) {
				d.Ticket = [2]int{at, at + d.rest - ageLen}
			}
		}
		if d.at == 0 {
			d.message, d.index = b[0], 0
		}
		n := min(d.rest, len(b))
		dst = d.span(id, n, dst, first)
		for _, c := range b[:min(n, 4)] {
			d.number = d.number<<8 | uint32(c)
		}
		d.pass(n)
		b = b[n:]
	}
	return dst
}

// span appends n bytes of the field: to the span before, where neither is random.
func (d *Dissector) span(id parsers.ProtocolID, n int, dst []parsers.Span, first int) []parsers.Span {
	if last := len(dst) - 1; last >= first && d.at > 0 && !random[d.field] && !dst[last].Encrypted {
		dst[last].Len += n
		dst[last].Body = dst[last].Len
		return dst
	}
	key := [2]byte{d.message, d.index}
	d.index++
	return append(dst, parsers.Span{
		Len: n, At: d.at, Protocol: id, Name: uint8(Handshake), Class: parsers.ClassUrgent, Encrypted: random[d.field],
		Key: parsers.MessageKey(id, uint8(Handshake), key[:], len(key)), Body: n,
	})
}

// pass goes over n bytes of the field.
func (d *Dissector) pass(n int) {
	d.at += n
	d.rest -= n
	if d.field != fieldHead {
		d.left -= n
		d.ext = max(d.ext-n, 0)
	}
}

// next finds the field behind the one that has ended. It is empty at most for as often as
// a message has fields: where the message has ended, the next one's head follows.
func (d *Dissector) next() {
	if d.field == fieldHead {
		d.left = int(d.number & 0xffffff)
	}
	s := steps[d.field]
	switch {
	case d.field == fieldNone, d.field != fieldHead && d.left == 0:
		d.at, d.ext = 0, 0
		d.field, d.rest, d.number = fieldHead, handshakeHead, 0
		return
	case d.field == fieldHead:
		s = d.begin()
	case d.field == fieldSession && d.message == typeServerHello:
		s = step{fieldMethods, 3}
	case d.field == fieldSession:
		s = step{fieldSuitesLen, 2}
	case d.field == fieldLifetime && d.TLS13:
		s = step{fieldAge, 4}
	case d.field == fieldLifetime:
		s = step{fieldTicketLen, 2}
	case d.field == fieldExtHead:
		s = d.extension()
	case d.ext > 0 && (s.field == fieldNone || d.field == fieldBinder):
		s = step{fieldExt, d.ext}
	case d.ext == 0 && d.field >= fieldExt && d.field <= fieldTicket12: // a HelloRetryRequest has a group without a share
		s = step{fieldExtHead, 4}
	case s.field == fieldNone:
		s = step{fieldRest, d.left}
	}
	d.enter(s)
}

// enter begins a field, as far as it is in the message and in the extension.
func (d *Dissector) enter(s step) {
	switch s.bytes {
	case said1:
		s.bytes = int(d.number & 0xff)
	case said2:
		s.bytes = int(d.number & 0xffff)
	case behind:
		s.bytes = d.behind
	}
	switch s.field {
	case fieldIdentity:
		s.bytes += ageLen
	case fieldTicketKey:
		d.behind = s.bytes
		s.bytes = min(s.bytes, ticketKeyLen)
		d.behind -= s.bytes
	}
	if d.ext > 0 {
		s.bytes = min(s.bytes, d.ext)
	}
	d.field, d.rest, d.number = s.field, min(s.bytes, d.left), 0
}

// begin returns the first field of a message.
func (d *Dissector) begin() step {
	switch d.message {
	case typeClientHello, typeServerHello:
		return step{fieldVersion, 2}
	case typeNewSessionTicket:
		return step{fieldLifetime, 4}
	case typeServerKeyExchange:
		return step{fieldCurve, 3}
	case typeCertificateVerify:
		return step{fieldScheme, 4}
	case typeClientKeyExchange:
		return step{fieldPointLen, 1}
	case typeFinished:
		return step{fieldVerify, d.left}
	}
	return step{fieldRest, d.left}
}

// extension returns the first field of an extension.
func (d *Dissector) extension() step {
	d.ext = int(d.number & 0xffff)
	switch kind := d.number >> 16; {
	case d.ext == 0:
		return step{fieldExtHead, 4}
	case kind == extKeyShare && d.message == typeClientHello:
		return step{fieldSharesLen, 2}
	case kind == extKeyShare:
		return step{fieldShareHead, 4}
	case kind == extPreSharedKey && d.message == typeClientHello:
		return step{fieldIdentityHead, 4}
	case kind == extSessionTicket:
		return step{fieldTicket12, d.ext}
	}
	return step{fieldExt, d.ext}
}
