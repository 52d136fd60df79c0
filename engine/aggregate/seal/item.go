package seal

// An opened payload stands for the payload of one segment. It is a sequence of items,
// each a marker and what belongs to it (engine/wire/SPEC.md section 10.3):
//
//	17                   "\x30\x0b..."       a whole record of application data
//	37 00 0d             "\x30\x0b..."       the same with its length: more items follow
//	02 17 0400           "..."               the beginning of a record
//	00                   "\x16\x03\x03..."   bytes that are not opened
//
// Bytes to which an item has no length go on to the end of the payload.
const (
	itemPlain  = 0  // bytes as they are in the segment
	itemHead   = 1  // the bytes that a record begins with, cut short of its head's end
	itemBegin  = 2  // the beginning of a record that goes on in the next segment: type, length(2)
	itemMore   = 3  // the next bytes of such a record
	itemNumber = 4  // the number of the record that follows, as a varint, and how much of it went before
	itemStage  = 5  // which of the keys told are the ones from here on
	itemUpdate = 6  // the keys that follow those in use (RFC 8446 section 7.2)
	itemNamed  = 7  // a ticket that the receiver sent, by its name(8)
	itemClient = 8  // the payload is a record with a ClientHello, which the receiver may name
	itemServer = 9  // the name(8) of the ClientHello that is answered, and the record of the ServerHello, its session id left out
	itemDone   = 10 // the client's Finished, a record that the receiver foretold, by its name(8)
	// From changeCipherSpec to heartbeat: a whole record whose content is of that type.

	itemKind = 0x1f // the marker's bits that say which item it is

	// Flags of a marker. Each has a meaning for some items, and is invalid with others.
	flagSized  = 0x20 // itemPlain, a whole record: the length(2) of what follows is given
	flagPadded = 0x40 // a whole record of TLS 1.3: so many zeros(2) are behind its content
	flagNonce  = 0x80 // a whole record, itemBegin: the explicit nonce(8) is given
	flagVerify = 0x80 // a whole record of the handshake, TLS 1.3: what the Finished says, at its end, is left out
	flagCut    = 0x20 // itemBegin, itemMore: so many bytes(1) of the tag were in segments up to this one
	flagWrong  = 0x40 // itemBegin, itemMore: the tag's bytes of this segment are given, being wrong
	flagOnce   = 0x20 // itemNumber: for this segment only
)

// Content types (RFC 8446 section 5.1, RFC 6520).
const (
	changeCipherSpec = 20
	alert            = 21
	handshake        = 22
	applicationData  = 23
	heartbeat        = 24
)

// maxInner bounds what a record holds, in bytes: content, type and padding of TLS 1.3
// (RFC 8446 section 5.2).
const maxInner = 1<<14 + 1

// recordHead returns what a protected record begins with. The version is that of TLS 1.2
// in 1.3 as well (RFC 8446 section 5.1).
func recordHead(kind byte) [3]byte { return [3]byte{kind, 3, 3} }
