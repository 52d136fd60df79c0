package seal

import (
	"bytes"
	"crypto/hmac"
	"encoding/binary"
	"hash"
)

// What a Finished says is determined by the messages before it and by the secret of its
// direction (RFC 8446 section 4.4.4), so it is made and not sent. The server's is made by the
// Sealer. The client's is made beside the server, and its name told to the gateway that it
// passes first: where it comes as it was foretold, that is all that has to be said of it.

const typeFinished = 20

// A transcript is the hash of a connection's handshake messages in their order (RFC 8446
// section 4.4.1), from a ClientHello on that both ends have. The zero value is none.
type transcript struct {
	hash hash.Hash // nil for none
}

// begin begins it with the hellos. A suite that is not of TLS 1.3, or not known, begins
// none.
func (t *transcript) begin(s Suite, client, server []byte) {
	t.stop()
	if p := s.find(); p != nil && p.tls13 {
		t.hash = p.hash()
		t.hash.Write(client)
		t.hash.Write(server)
	}
}

// stop ends it: something of it is not known at both ends, or nobody needs it any more.
func (t *transcript) stop() { t.hash = nil }

// appendVerify appends what a Finished behind the messages says, by material of its
// direction's handshake.
func (t *transcript) appendVerify(dst []byte, p *suite, material []byte) []byte {
	key, err := p.expand(material, "finished", t.hash.Size())
	if err != nil { // not for such a length
		return dst
	}
	mac := hmac.New(p.hash, key)
	mac.Write(t.hash.Sum(nil))
	clear(key)
	return mac.Sum(dst)
}

// finishedAt returns where content, which is of whole messages, ends with a Finished that
// says n bytes.
func finishedAt(content []byte, n int) (at int, ok bool) {
	for len(content)-at >= messageHead {
		size := messageLen(content[at:])
		if content[at] == typeFinished {
			return at, size == n && at+messageHead+n == len(content)
		}
		at += messageHead + size
	}
	return 0, false
}

// follow takes the content of an opened record into the transcript, and returns how many
// bytes at its end the Sealer knows.
func (o *Opener) follow(inner []byte) (known int) {
	t, k := &o.messages, &o.keys
	if t.hash == nil {
		return 0
	}
	kind, b := content(inner)
	if kind != handshake || k.stage != stageHandshake {
		t.stop()
		return 0
	}
	at, ok := finishedAt(b, t.hash.Size())
	if !ok {
		t.hash.Write(b)
		return 0
	}
	t.hash.Write(b[:at])
	verify := t.appendVerify(nil, k.current.suite, k.current.material)
	t.hash.Write(b[at:])
	if bytes.Equal(verify, b[at+messageHead:]) {
		o.foretell()
		known = len(verify)
	}
	t.stop()
	return known
}

// follow takes the content of a record into the transcript, and returns it with what the
// Finished at its end says, where that was left out.
func (s *Sealer) follow(r *reader, kind byte, content []byte, left bool) []byte {
	t := &s.messages
	if t.hash == nil || s.once || kind != handshake || s.stage != stageHandshake {
		r.check(!left)
		return content
	}
	if !left {
		t.hash.Write(content)
		return content
	}
	n := t.hash.Size()
	at := len(content) - messageHead
	if r.check(at >= 0 && binary.BigEndian.Uint32(content[max(at, 0):]) == typeFinished<<24|uint32(n)); r.bad {
		return content
	}
	t.hash.Write(content[:at])
	s.room.fields = append(s.room.fields[:0], content...)
	s.room.fields = t.appendVerify(s.room.fields, s.keys.suite, s.keys.material)
	t.stop()
	return s.room.fields
}

// foretell makes the record with the client's Finished, once the server's is in the
// transcript, and tells the far end its name. A client that was not asked for a certificate
// has nothing to send before it but early data; where it sends something else in its place,
// nothing comes of this.
func (o *Opener) foretell() {
	c := o.conn
	theirs := &c.theirs[stageHandshake]
	if c.fromClient || c.certificates || theirs.material == nil || theirs.suite != o.keys.current.Suite() {
		return
	}
	keys, err := NewKeys(theirs.suite, theirs.material)
	if err != nil {
		return
	}
	inner := binary.BigEndian.AppendUint32(nil, typeFinished<<24|uint32(o.messages.hash.Size()))
	inner = o.messages.appendVerify(inner, keys.suite, theirs.material)
	inner = append(inner, handshake)
	record := keys.Seal(nil, recordHead(applicationData), nil, inner, 0)
	keys.Clear()
	name := o.room.texts.send(record)
	o.secrets.b = append(append(o.secrets.b, tellExpected), name[:]...)
}

// done writes the client's Finished, a record, if it is the one that was foretold.
func (o *Opener) done(w *writer, record []byte) bool {
	if !o.foretold || o.keys.current != nil || o.keys.passed > 0 || nameOf(record) != o.expected {
		return false
	}
	if _, known := o.room.texts.received[o.expected]; !known {
		return false
	}
	o.opened, o.Missed, o.rest = true, true, 0
	o.foretold = false
	w.item(itemDone)
	w.b = append(w.b, o.expected[:]...)
	w.bytes(nil, Piece{Type: handshake, Plain: true, Protected: true, Start: true})
	o.keys.pass()
	o.conn.count(len(record) - HeadLen - TagLen - 1)
	return true
}
