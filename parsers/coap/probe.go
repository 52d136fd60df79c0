package coap

import "sheaf/parsers"

// What speaks for a message: each known option that is where and as long as it
// should be, and text in those that hold text. Random bytes have next to no
// chance of that much; text itself has not either, since its characters are
// options that do not end where it does.
const (
	optionWeight = 3
	maxText      = 8 // bytes of text that count
	minText      = 3
	strongWeight = 9
)

// Probe judges whether a datagram is a CoAP message; see parsers.Protocol.
func Probe(datagram []byte) parsers.Confidence {
	var f front
	if parseFront(datagram, &f) != ok || f.name == Request || f.name == Success {
		return parsers.None // nobody has those codes yet, other protocols do
	}
	if weigh(datagram, &f) < strongWeight || printable(datagram[:f.body]) {
		return parsers.Weak
	}
	return parsers.Strong
}

// weigh adds up what speaks for a message, 0 when something speaks against it.
func weigh(b []byte, f *front) (weight int) {
	where := uint8(inResponse)
	if f.request() {
		where = inRequest
	}
	text, before := 0, 0
	for o := (options{at: f.options}); o.next(b); before = o.number {
		if o.number >= len(knownOptions) {
			return 0
		}
		k := &knownOptions[o.number]
		if k.where&where == 0 || o.value.len < k.min || o.value.len > k.max || o.number == before && !k.again {
			return 0
		}
		weight += optionWeight
		if k.text {
			if !printable(o.value.of(b)) {
				return 0
			}
			text += o.value.len
		}
	}
	if text < minText {
		return 0
	}
	return weight + min(text, maxText)
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
