package parsers

// A Span is a run of payload bytes that a Scanner recognised: a whole message,
// a part of one (a message that straddles segments), or opaque bytes. Spans are
// advice: they tell the core what is worth comparing with what. Wrong spans
// cost bytes on the link, never correctness.
type Span struct {
	Len       int        // bytes of payload, always > 0
	At        int        // where the span starts inside its message; 0 at its first byte
	Protocol  ProtocolID // Opaque when nothing is known
	Name      uint8      // the message's kind within its protocol; see Registry.MessageName
	Class     Class      // how the message may wait
	Encrypted bool       // ciphertext behind Body: like nothing before, and nobody need look
	Event     []byte     // topic, subject, channel, ...; nil when it has none. Borrowed until the next Scan of the same flow.
	Key       uint64     // names protocol, kind and event together: equal keys mean comparable messages; 0 for opaque
	Body      int        // offset of the message body inside the span; Len when the body is elsewhere or empty
	Holes     [MaxHoles]Hole
	NumHoles  int
}

// MaxHoles is how many fields of one span can belong to its flow.
const MaxHoles = 6

// A Hole is a field that belongs to the flow and not to the message: it differs
// between the copies that subscribers get (an MQTT packet identifier). The core
// takes it out before it compares bodies, and predicts it per flow.
//
// A HoleMask says that the bytes of the span behind it are masked: each is the
// exclusive or of what is compared with a byte of the key, in turn. The other
// holes, and what the scanner says of bodies and events, are about the bytes
// without the mask. It is the first hole of its span.
type Hole struct {
	Off     int      // offset inside the span
	Len     int      // bytes, 1 to 8 for HoleBig; 1 to MaxHoleDigits for HoleDecimal; 1 to MaxHoleText for HoleText; 4 or 0 for HoleMask
	Kind    HoleKind // how the bytes make a number
	Counter uint8    // which of the flow's counters it follows, 0 to NumCounters-1
	Step    uint8    // what the next value is expected to add: 0 constant, 1 counts up; 0 for HoleText and HoleMask
	Phase   uint8    // HoleMask of Len 0: which byte of the key the first masked byte has, 0 to 3; else 0
	Key     uint32   // HoleMask: the key, its first byte the most significant; else 0
}

const (
	MaxHoleText   = 64 // the longest HoleText, bytes
	MaxHoleDigits = 19 // the longest HoleDecimal: what always fits 64 bits
)

// NumCounters is how many counters the core keeps for a flow. Protocols that run
// over others leave them the last one.
const NumCounters = 4

// HoleKind says how a hole's bytes make a number.
type HoleKind uint8

const (
	HoleBig     HoleKind = iota // unsigned, network byte order
	HoleDecimal                 // ASCII digits, no sign, no leading zero
	HoleText                    // any bytes, expected to be the same again (a consumer tag)
	HoleMask                    // a mask's key, 4 bytes; of no bytes where the key came earlier in the flow
)

// Class says how long a message may wait to be merged with others (the times
// themselves belong to the engine).
type Class uint8

const (
	ClassData   Class = iota // waits for the window
	ClassAck                 // only acknowledges: may wait longer, to ride with data
	ClassUrgent              // must not wait: pings, connects
)
