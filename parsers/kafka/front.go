package kafka

import "encoding/binary"

const (
	headSize     = 4  // of the size that every message begins with
	responseHead = 8  // and its correlation ID
	requestHead  = 14 // and API key, version, correlation ID, length of the client ID

	// maxMessage is the largest message that is believed. Brokers take 100 MiB by
	// themselves.
	maxMessage = 256 << 20

	maxString = 512 // of a client ID or transactional ID
	maxTopic  = 249
	topicID   = 16 // bytes of a topic's number

	// maxFront is more than parseFront ever asks for: a Produce request with both
	// IDs and a topic, and all numbers written as long as can be.
	maxFront = requestHead + 3*maxString + 4*5 + 6
)

// The first versions that are written in the compact way, and those that number
// their topics.
const (
	produceCompact = 9
	fetchCompact   = 12
	topicNumbers   = 13
)

// A side is which way a flow goes.
type side uint8

const (
	unknown side = iota
	requests
	responses
)

// A place is where a field is. Offsets are from the message's first byte.
type place struct{ off, len int }

func (p place) of(b []byte) []byte { return b[p.off : p.off+p.len] }

// A front is what the beginning of a message tells.
type front struct {
	side    side
	name    Name
	version uint16
	size    int   // bytes of the whole message
	id      int   // offset of the correlation ID
	client  place // client ID, empty when there is none
	session int   // offset of a Fetch request's session ID and epoch, 0 when there are none
	topic   place // the first topic, empty when there is none
	body    int   // offset of what follows all these
}

// parseFront reads the beginning of a message into f, which is zero. It returns
// short when it needs more bytes, of which maxFront are always enough and the
// whole message is too. What it says does not depend on the bytes after those it
// needs.
func parseFront(b []byte, s side, f *front) fault {
	if len(b) < headSize {
		if len(b) > 0 && b[0] > maxMessage>>24 {
			return faultSize
		}
		return short
	}
	size := binary.BigEndian.Uint32(b)
	if size < responseHead-headSize || size > maxMessage {
		return faultSize
	}
	f.size = headSize + int(size)
	if s != responses {
		bad := f.request(b)
		if s == requests || bad == ok || bad == short {
			return bad
		}
		*f = front{size: f.size}
	}
	f.name = Response
	f.id = headSize
	f.body = responseHead
	switch {
	case len(b) < responseHead:
		return short
	case b[f.id] >= 0x80:
		return faultCorrelation
	}
	f.side = responses
	return ok
}

// request reads a request.
func (f *front) request(b []byte) fault {
	b = b[:min(len(b), f.size)]
	if len(b) >= headSize+2 { // as soon as it is there
		key := binary.BigEndian.Uint16(b[headSize:])
		if key > maxAPI {
			return faultAPI
		}
		f.name = apiName(key)
	}
	if len(b) < requestHead {
		switch {
		case f.size < requestHead:
			return faultTooShort
		case len(b) >= headSize+4 && binary.BigEndian.Uint16(b[headSize+2:]) > maxVersion:
			return faultVersion
		}
		return short
	}
	f.version = binary.BigEndian.Uint16(b[headSize+2:])
	f.id = headSize + 4
	switch {
	case f.version > maxVersion:
		return faultVersion
	case b[f.id] >= 0x80:
		return faultCorrelation
	}
	r := reader{b: b, at: requestHead - 2, size: f.size}
	var bad fault
	if f.client, bad = r.string(r.length(false)); bad != ok {
		return bad
	}
	f.side = requests
	f.body = r.at
	switch f.name {
	case Produce:
		bad = f.produce(&r)
	case Fetch:
		bad = f.fetch(&r)
	}
	if bad == ok && r.at <= f.size && r.bad == ok {
		f.body = r.at
	}
	return bad
}

// produce reads a Produce request as far as its first topic.
func (f *front) produce(r *reader) fault {
	compact := f.version >= produceCompact
	if compact && r.tags() || r.bad != ok {
		return r.bad
	}
	if f.version >= 3 {
		if n := r.length(compact); n > 0 {
			if _, bad := r.string(n); bad != ok {
				return bad
			}
		}
	}
	p := r.take(6)
	if p == nil {
		return r.bad
	}
	acks, timeout := binary.BigEndian.Uint16(p), p[2:]
	if acks > 1 && acks != 0xffff || timeout[0] >= 0x80 {
		return faultNumber
	}
	n := r.count(compact)
	if r.bad == ok && n == 0 {
		return faultCount
	}
	return f.first(r, compact)
}

// fetch reads a Fetch request as far as its first topic.
func (f *front) fetch(r *reader) fault {
	compact := f.version >= fetchCompact
	if compact && r.tags() || r.bad != ok {
		return r.bad
	}
	// The replica, how long to wait, for how many bytes, and at most how many,
	// the isolation, the session and its epoch.
	n := 8
	if f.version < 15 {
		n += 4
	}
	if f.version >= 3 {
		n += 4
	}
	if f.version >= 4 {
		n++
	}
	if f.version >= 7 {
		n += 8
	}
	p := r.take(n)
	if p == nil {
		return r.bad
	}
	if f.version < 15 {
		if replica := binary.BigEndian.Uint32(p); replica > 1<<31-1 && replica < 1<<32-2 {
			return faultNumber
		}
		p = p[4:]
	}
	switch {
	case p[0] >= 0x80, p[4] >= 0x80, f.version >= 3 && p[8] >= 0x80, f.version >= 4 && p[12] > 1:
		return faultNumber
	case f.version >= 7:
		f.session = r.at - 8
	}
	if n := r.count(compact); n == 0 { // as in the session's last request
		return r.bad
	}
	return f.first(r, compact)
}

// first reads the first topic of an array.
func (f *front) first(r *reader, compact bool) fault {
	if r.bad != ok {
		return r.bad
	}
	if f.version >= topicNumbers {
		f.topic = place{r.at, topicID}
		if r.skip(topicID); r.bad != ok {
			f.topic = place{}
		}
		return r.bad
	}
	var bad fault
	f.topic, bad = r.topic(compact)
	return bad
}

// topic reads the name of a topic.
func (r *reader) topic(compact bool) (place, fault) {
	n := r.length(compact)
	if r.bad == ok && (n == 0 || n > maxTopic) {
		return place{}, faultTopic
	}
	p := r.take(n)
	if p == nil {
		return place{}, r.bad
	}
	for _, c := range p {
		if !topicBytes[c] {
			return place{}, faultTopic
		}
	}
	return place{r.at - n, n}, ok
}

// topicBytes are what names of topics are made of.
var topicBytes = func() (list [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") {
		list[c] = true
	}
	return list
}()
