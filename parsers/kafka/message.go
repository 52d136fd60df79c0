package kafka

import (
	"encoding/binary"

	"sheaf/parsers"
)

// A Field is a place in a message.
type Field struct {
	Off, Len int // from the message's first byte; Len is 0 when it is not there
}

// Bytes returns the field's bytes in the message it is of, which it borrows.
func (f Field) Bytes(message []byte) []byte { return message[f.Off : f.Off+f.Len] }

// A Batch is one record batch, or of old formats one message with what is
// compressed in it.
type Batch struct {
	Field
	Magic   uint8 // 2 for a batch, 0 and 1 for messages
	Codec   uint8 // 0 for none, then gzip, snappy, lz4, zstd
	Records int   // how many it says it holds; 1 for a message
}

// A Message is one request or response taken apart.
type Message struct {
	Name        Name
	Version     uint16 // of a request
	Correlation uint32
	Length      int   // bytes of the whole message
	Client      Field // client ID
	Topic       Field // the first topic of Produce and Fetch
	Body        int   // offset of what follows these
	Batches     []Batch
}

// Parse takes apart the message that b begins with and returns its size. Is it
// not known whether that is a response, what can be a request is one. The error
// is parsers.ErrCut when the message goes on after b, else a *parsers.Error.
func Parse(b []byte, response bool) (Message, int, error) {
	s := unknown
	if response {
		s = responses
	}
	var f front
	if bad := parseFront(b, s, &f); bad != ok {
		return Message{}, 0, bad.err(f.name, f.body)
	}
	if len(b) < f.size {
		return Message{}, 0, parsers.ErrCut
	}
	m := Message{
		Name: f.name, Version: f.version, Correlation: binary.BigEndian.Uint32(b[f.id:]), Length: f.size,
		Client: Field{f.client.off, f.client.len}, Topic: Field{f.topic.off, f.topic.len}, Body: f.body,
	}
	if f.name == Produce && f.topic.len > 0 {
		r := reader{b: b[:f.size], at: f.body, size: f.size}
		if m.partitions(&r); r.bad != ok {
			return Message{}, 0, r.bad.err(f.name, r.at)
		}
	}
	return m, f.size, nil
}

// partitions reads the partitions of a Produce request's first topic.
func (m *Message) partitions(r *reader) {
	compact := m.Version >= produceCompact
	for range r.count(compact) {
		r.u32() // partition
		n := int(r.u32n(compact))
		if !r.skip(n) {
			return
		}
		m.batches(r, r.at-n)
		if compact && r.tags() || r.bad != ok {
			return
		}
	}
}

// u32n reads the size of bytes that may be missing, and is 0 then.
func (r *reader) u32n(compact bool) uint32 {
	if compact {
		return max(r.uvarint(), 1) - 1
	}
	if n := r.u32(); n != 1<<32-1 {
		return n
	}
	return 0
}

// batches reads the record batches of a partition, from an offset to where r is.
func (m *Message) batches(r *reader, at int) {
	const (
		prefix  = 12 // offset and length
		magicAt = 16
		least   = 26 // of a message
		least2  = 61 // of a batch
	)
	for at < r.at {
		b := r.b[at:r.at]
		if len(b) < least {
			r.bad = faultBatch
			return
		}
		n := int64(prefix) + int64(binary.BigEndian.Uint32(b[8:]))
		batch := Batch{Field: Field{at, int(n)}, Magic: b[magicAt], Codec: b[magicAt+1] & 7, Records: 1}
		if batch.Magic == 2 && len(b) >= least2 {
			batch.Codec = b[22] & 7
			batch.Records = int(binary.BigEndian.Uint32(b[57:]))
		}
		if n > int64(len(b)) || n < least || batch.Magic > 2 || batch.Magic == 2 && n < least2 {
			r.bad = faultBatch
			return
		}
		m.Batches = append(m.Batches, batch)
		at += int(n)
	}
}
