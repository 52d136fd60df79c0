package seal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

// A client that resumes a session sends the ticket that it was given (RFC 8446 sections
// 2.2 and 4.6.1): two hundred bytes and more that both ends of the lane have seen, as what
// was in a record of the other direction. So it goes by its name. A ClientHello is named
// too, where it is marked: what answers it follows from it in part.

// A textName is the beginning of the SHA-256 of a text. Nobody makes a text of a given name;
// two of one name a client could make, with which an epoch could be ended, so that of its
// ClientHellos none is marked whose name another text has. A ticket is the server's and
// encrypted, and a record is not for the client to choose.
type textName [8]byte

func nameOf(text []byte) textName {
	sum := sha256.Sum256(text)
	return textName(sum[:])
}

const (
	// maxTexts is how many of the newest texts that were received are known by name,
	// so that the end that sent them keeps as many, besides those that may be on their
	// way: some 250 bytes each, and a ClientHello 300 to 1,800. A broker gives each
	// client one or two tickets.
	maxTexts = 1 << 13

	minText = 32   // bytes; below it a name saves little
	maxText = 2048 // RFC 8446 allows 65,535; those with client certificates have some 1,500
)

// texts are those of a lane: received has the newest ones that the peer sent, which this
// end may name; sent has those that this end sent, which the peer may name.
type texts struct {
	received map[textName]int // times in order
	order    []textName       // of received: a ring
	oldest   int

	sent    map[textName]*text
	queue   []sentText // of sent, the oldest first
	pending int        // at the end of queue, of no frame yet
	acked   int        // at the beginning of queue, that the peer has
}

type text struct {
	bytes []byte
	times int // in queue
}

type sentText struct {
	name  textName
	frame uint64 // that had it
}

// receive notes a text that the peer sent, and each time that it sent it: so does the
// peer.
func (t *texts) receive(b []byte) { t.receiveAs(nameOf(b)) }

// receiveAs notes a text of which the peer sent the name.
func (t *texts) receiveAs(name textName) {
	if t.received == nil {
		t.received = make(map[textName]int)
	}
	t.received[name]++
	if len(t.order) < maxTexts {
		t.order = append(t.order, name)
		return
	}
	if old := t.order[t.oldest]; t.received[old] > 1 {
		t.received[old]--
	} else {
		delete(t.received, old)
	}
	t.order[t.oldest] = name
	t.oldest = (t.oldest + 1) % maxTexts
}

// taken says whether another text that is sent, and not forgotten, has the name of b.
func (t *texts) taken(b []byte) bool {
	other := t.sent[nameOf(b)]
	return other != nil && !bytes.Equal(other.bytes, b)
}

// send notes a text that is sent with the next frame, or foretold, and returns its name.
func (t *texts) send(b []byte) textName {
	name := nameOf(b)
	if t.sent == nil {
		t.sent = make(map[textName]*text)
	}
	if t.sent[name] == nil {
		t.sent[name] = &text{bytes: append([]byte(nil), b...)}
	}
	t.sent[name].times++
	t.queue = append(t.queue, sentText{name: name})
	t.pending++
	return name
}

// written notes the number of the frame that has what was sent since the last one.
func (t *texts) written(frame uint64) {
	for i := len(t.queue) - t.pending; i < len(t.queue); i++ {
		t.queue[i].frame = frame
	}
	t.pending = 0
}

// acknowledged notes that the peer wrote a frame when it had rebuilt frames up to n, and
// that this frame has been rebuilt. What it may name from now on are the newest maxTexts
// that it had then, or got later; whole frames of others are forgotten.
func (t *texts) acknowledged(n uint64) {
	for t.acked < len(t.queue)-t.pending && t.queue[t.acked].frame <= n {
		t.acked++
	}
	drop := 0
	for t.acked-drop > maxTexts {
		end := drop
		for end < t.acked && t.queue[end].frame == t.queue[drop].frame {
			end++
		}
		if t.acked-end < maxTexts {
			break
		}
		drop = end
	}
	t.forget(drop)
}

// forget forgets the n oldest of those sent.
func (t *texts) forget(n int) {
	if n == 0 {
		return
	}
	for _, old := range t.queue[:n] {
		if k := t.sent[old.name]; k.times > 1 {
			k.times-- // it was sent again
		} else {
			delete(t.sent, old.name)
		}
	}
	t.queue = append(t.queue[:0], t.queue[n:]...)
	t.acked -= n
}

// ticketsIn calls use with each ticket that is in the content of a handshake record of the
// traffic, as far as it is whole there (RFC 8446 section 4.6.1):
//
//	type(1) length(3) lifetime(4) age(4) length(1) nonce length(2) ticket ...
func ticketsIn(b []byte, use func(ticket []byte)) {
	const newSessionTicket, fixed = 4, 8
	for len(b) >= messageHead {
		n := messageLen(b)
		if n > len(b)-messageHead {
			return
		}
		message := b[messageHead:][:n]
		if at := fixed + 1; b[0] == newSessionTicket && len(message) > at {
			at += int(message[fixed])
			if len(message) >= at+2 {
				size := int(binary.BigEndian.Uint16(message[at:]))
				if at += 2; size >= minText && size <= maxText && size <= len(message)-at {
					use(message[at : at+size])
				}
			}
		}
		b = b[messageHead+n:]
	}
}
