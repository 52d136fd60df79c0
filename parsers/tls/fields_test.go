package tls

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sheaf/parsers"
)

// shape tells the lengths of spans, random ones with an r before, messages apart by a bar.
func shape(spans []parsers.Span) string {
	var out strings.Builder
	for i, sp := range spans {
		switch {
		case i > 0 && sp.At == 0:
			out.WriteString(" | ")
		case i > 0:
			out.WriteString(" ")
		}
		if sp.Encrypted {
			out.WriteString("r")
		}
		fmt.Fprint(&out, sp.Len)
	}
	return out.String()
}

// msg is a handshake message of a type.
func msg(typ byte, parts ...string) string {
	body := strings.Join(parts, "")
	return string([]byte{typ, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}) + body
}

// list puts the length of some parts, in so many bytes, before them.
func list(bytes int, parts ...string) string {
	body := strings.Join(parts, "")
	head := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	return string(head[4-bytes:]) + body
}

// ext is an extension.
func ext(kind uint16, parts ...string) string {
	return string(binary.BigEndian.AppendUint16(nil, kind)) + list(2, parts...)
}

var (
	x25519 = "\x00\x1d" + list(2, strings.Repeat("s", 32))
	// The hellos as far as their extensions.
	clientBegin  = "\x03\x03" + random32 + list(1, strings.Repeat("i", 32)) + list(2, "\x13\x01\x13\x02") + list(1, "\x00")
	serverBegin  = "\x03\x03" + random32 + list(1, strings.Repeat("i", 32)) + "\x13\x01\x00"
	versions     = ext(43, "\x02\x03\x04")
	endFinished  = msg(20, strings.Repeat("f", 32))
	preShared    = ext(41, list(2, list(2, strings.Repeat("t", 100)), "\x00\x00\x00\x01"), list(2, list(1, strings.Repeat("b", 32))))
	clientLonger = msg(1, clientBegin, list(2, versions, ext(51, list(2, x25519)), ext(0, "name"), preShared))
)

// TestCutFields holds how messages are cut, also where they have an end of their own or
// none that is right: the message behind them is found.
func TestCutFields(t *testing.T) {
	for _, tt := range []struct {
		name string
		b    string
		want string
	}{
		{"messages without a body", msg(14) + msg(0) + msg(5), "4 | 4 | 4"},
		{"such as have fields", msg(1) + msg(2) + msg(4) + msg(12) + msg(15) + msg(16) + msg(20), "4 | 4 | 4 | 4 | 4 | 4 | 4"},
		{"a message of a type that has none", msg(99, "body"), "8"},
		{"a ClientHello that resumes", clientLonger, "6 r32 1 r32 27 r32 16 r104 3 r32"},
		{"no session id, no key share, no identity", msg(1, "\x03\x03", random32, "\x00", list(2, "\x13\x01"), list(1, "\x00"), list(2, versions)), "6 r32 16"},
		{"a share of no byte before another", msg(1, clientBegin, list(2, ext(51, list(2, "\x00\x17\x00\x00", x25519)))), "6 r32 1 r32 24 r32"},
		{"empty extensions", msg(1, clientBegin, list(2, ext(35), ext(51), ext(41), ext(51, list(2, x25519)))), "6 r32 1 r32 32 r32"},
		{"a ticket of TLS 1.2 in a hello", msg(1, clientBegin, list(2, ext(35, "ticket"), versions)), "6 r32 1 r32 14 r6 7"},
		{"a ServerHello without extensions", msg(2, serverBegin), "6 r32 1 r32 3"},
		{"a HelloRetryRequest with a cookie behind the group", msg(2, serverBegin, list(2, ext(51, "\x00\x1d"), ext(44, "cookie"), versions)), "6 r32 1 r32 28"},
		{"a selected identity", msg(2, serverBegin, list(2, ext(51, x25519), ext(41, "\x00\x00"))), "6 r32 1 r32 13 r32 6"},
		{"a ticket with a nonce and an extension", msg(4, "life", "aged", list(1, "\x00\x00"), list(2, "the name of a keyticket"), list(2, ext(42, "size"))), "8 r4 21 r7 10"},
		{"a ticket as long as its key's name", msg(4, "life", "aged", list(1), list(2, "the name of a key"[:ticketKeyLen]), list(2, ext(42, "size"))), "8 r4 29"},
		{"a ticket that is shorter", msg(4, "life", "aged", list(1), list(2, "ticket"), list(2, ext(42, "size"))), "8 r4 19"},
		{"a share that ends with its extension", msg(1, clientBegin, list(2, "\x00\x33\x00\x0a\x00\x08\x00\x1d\x00\x04", "four", versions)), "6 r32 1 r32 20 r4 7"},
		{"a share that is one longer", msg(1, clientBegin, list(2, "\x00\x33\x00\x0a\x00\x08\x00\x1d\x00\x05", "four", versions)), "6 r32 1 r32 20 r4 7"},
		{"an identity that is longer than its extension", msg(1, clientBegin, list(2, "\x00\x29\x00\x08\x00\xff\x00\xff", "four", versions)), "6 r32 1 r32 18 r4 7"},
		{"a binder that is longer", msg(1, clientBegin, list(2, "\x00\x29\x00\x0c\x00\x05\x00\x01", "tages\x00\xff\xff", versions)), "6 r32 1 r32 18 r5 10"},
		{"a session id that is longer than the message", msg(1, "\x03\x03", random32, "\xff", "id"), "6 r32 1 r2"},
		{"a signature that is", msg(15, "\x08\x07\xff\xff", "signature"), "8 r9"},
		{"a signature that ends with it", msg(15, "\x08\x07", list(2, "signature")), "8 r9"},
		{"a signature that ends before", msg(15, "\x08\x07", list(2, "signature"), "!"), "8 r9 1"},
		{"a point that is longer than the message", msg(16, "\xff", "point"), "5 r5"},
	} {
		spans := cutAll(t, true, []byte(tt.b+endFinished))
		if got, want := shape(spans), tt.want+" | 4 r32"; got != want {
			t.Errorf("%s: %s, want %s", tt.name, got, want)
		}
	}
	spans := cutAll(t, false, []byte(msg(4, "life", list(2, "the name of a keyticket"))))
	if got := shape(spans); got != "26 r7" {
		t.Errorf("a ticket of TLS 1.2: %s", got)
	}
}

// TestCutShortMessages holds that a message which ends anywhere, with whatever it still
// promises, ends there.
func TestCutShortMessages(t *testing.T) {
	for _, whole := range []string{
		clientLonger,
		msg(2, serverBegin, list(2, ext(51, x25519), versions)),
		msg(4, "life", "aged", list(1, "\x00\x00"), list(2, "ticket"), list(2)),
		msg(12, "\x03\x00\x1d", list(1, "point"), "\x08\x07", list(2, "signature")),
		msg(15, "\x08\x07", list(2, "signature")),
		msg(16, list(1, "point")),
		endFinished,
	} {
		for n := range len(whole) - handshakeHead {
			b := msg(whole[0], whole[handshakeHead:][:n])
			if got := shape(cutAll(t, true, []byte(b+endFinished))); !strings.HasSuffix(got, " | 4 r32") || strings.Count(got, "|") != 1 {
				t.Fatalf("type %d with %d bytes: %s", whole[0], n, got)
			}
		}
	}
}

// TestCutTicket holds where a ticket is found: where it is there to its end.
func TestCutTicket(t *testing.T) {
	at := strings.Index(clientLonger, "tttt")
	var d Dissector
	d.Cut(testID, []byte(clientLonger), nil)
	if d.Ticket != [2]int{at, at + 100} {
		t.Errorf("a ticket at %v, want %d with 100 bytes", d.Ticket, at)
	}
	d.Cut(testID, []byte(endFinished), nil)
	if d.Ticket != [2]int{} {
		t.Errorf("a ticket at %v in a Finished", d.Ticket)
	}
	for _, cut := range []int{at - 1, at, at + 1, at + 103} {
		var d Dissector
		d.Cut(testID, []byte(clientLonger[:cut]), nil)
		first := d.Ticket
		d.Cut(testID, []byte(clientLonger[cut:]), nil)
		want := [2]int{}
		if cut <= at {
			want = [2]int{at - cut, at - cut + 100}
		}
		if first != [2]int{} || d.Ticket != want {
			t.Errorf("cut at %d: tickets at %v and %v, want %v in the second piece", cut, first, d.Ticket, want)
		}
	}
}

// marked returns messages with their random bytes as 1 and the others as 0.
func marked(spans []parsers.Span) (out []byte) {
	for _, sp := range spans {
		c := byte(0)
		if sp.Encrypted {
			c = 1
		}
		out = append(out, bytes.Repeat([]byte{c}, sp.Len)...)
	}
	return out
}

// TestCutAnySplit holds that the same bytes are random however segments and records
// divide them, and that At goes on.
func TestCutAnySplit(t *testing.T) {
	h := newHandshaker(t)
	var streams [][]byte
	var are13 []bool
	for _, k := range kinds {
		messages := h.connections(&k)[0]
		streams = append(streams, messages[0], messages[1])
		are13 = append(are13, k.isTLS13(), k.isTLS13())
	}
	for i, b := range streams {
		want := marked(cutAll(t, are13[i], b))
		if got := marked(cutAll(t, are13[i], slices.Collect(slices.Chunk(b, 1))...)); !bytes.Equal(got, want) {
			t.Errorf("stream %d, byte by byte: other bytes are random", i)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, len(streams)-1).Draw(t, "stream")
		b := streams[i]
		var pieces [][]byte
		for rest := b; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		spans := cutAll(t, are13[i], pieces...)
		if !bytes.Equal(marked(spans), marked(cutAll(t, are13[i], b))) {
			t.Fatalf("other bytes are random")
		}
		for j, sp := range spans[1:] {
			if before := spans[j]; sp.At != 0 && sp.At != before.At+before.Len {
				t.Fatalf("a span at %d behind %d bytes at %d", sp.At, before.Len, before.At)
			}
		}
	})
}

// FuzzDissector holds that arbitrary bytes are cut to their end, the same however they
// are divided, and that a message behind them is found once theirs has ended.
func FuzzDissector(f *testing.F) {
	for _, b := range []string{clientLonger, msg(2, serverBegin, list(2, ext(51, x25519))), msg(4, "life", "aged", "\x00", list(2, "t"), "\x00\x00"), msg(12, "\x03\x00\x1d", list(1, "point")), msg(14) + msg(16, list(1, "point"))} {
		f.Add([]byte(b+endFinished), uint16(50), true)
		f.Add([]byte(b), uint16(3), false)
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint16, tls13 bool) {
		whole := cutAll(t, tls13, b)
		cut := min(int(at), len(b))
		pieces := cutAll(t, tls13, b[:cut], b[cut:])
		if !bytes.Equal(marked(whole), marked(pieces)) {
			t.Fatalf("cut at %d other bytes are random", cut)
		}
		d := Dissector{TLS13: tls13}
		d.Cut(testID, b, nil)
		if from, to := d.Ticket[0], d.Ticket[1]; from < 0 || from > to || to > len(b) {
			t.Fatalf("a ticket at %d to %d of %d bytes", from, to, len(b))
		}
		if d.field != fieldHead && d.left == 0 {
			if got := shape(d.Cut(testID, []byte(endFinished), nil)); got != "4 r32" {
				t.Fatalf("a Finished behind is %s", got)
			}
		}
	})
}
