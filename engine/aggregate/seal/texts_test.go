package seal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"sheaf/parsers"
)

// ticketOf returns a ticket that is like no other.
func ticketOf(n int) []byte {
	b := bytes.Repeat([]byte{7}, minText)
	binary.BigEndian.PutUint64(b, uint64(n))
	return b
}

// A receiver knows the newest maxTexts by name, and not one more.
func TestReceivedTicketsAreBounded(t *testing.T) {
	var k texts
	for n := range maxTexts {
		k.receive(ticketOf(n))
	}
	has := func(n int) bool { _, ok := k.received[nameOf(ticketOf(n))]; return ok }
	if len(k.received) != maxTexts || !has(0) {
		t.Fatalf("%d at the bound, the first: %v", len(k.received), has(0))
	}
	k.receive(ticketOf(maxTexts))
	if len(k.received) != maxTexts || has(0) || !has(1) || !has(maxTexts) {
		t.Errorf("%d past the bound; the first %v, the second %v, the last %v", len(k.received), has(0), has(1), has(maxTexts))
	}
}

// What one end knows by name the other has, however often tickets are sent.
func TestTicketsAreCountedAlike(t *testing.T) {
	var here, there texts
	send := func(n int) {
		here.send(ticketOf(n))
		here.written(1)
		there.receive(ticketOf(n))
		here.acknowledged(1)
	}
	send(0)
	for range maxTexts - 1 {
		send(1)
	}
	has := func() [2]bool {
		return [2]bool{here.sent[nameOf(ticketOf(0))] != nil, there.received[nameOf(ticketOf(0))] > 0}
	}
	if got := has(); got != [2]bool{true, true} {
		t.Errorf("at the bound: %v", got)
	}
	send(1)
	if got := has(); got[1] && !got[0] {
		t.Errorf("past it: %v", got)
	}
	if len(there.received) != 1 {
		t.Errorf("%d tickets past the bound", len(there.received))
	}
}

// What the peer may name is there: the newest maxTexts of those that it had, and all
// that may be on their way. Whole frames of others are forgotten.
func TestSentTicketsStayForThePeer(t *testing.T) {
	const each = 100 // in a frame
	var k texts
	frames := maxTexts/each + 3
	for f := range frames {
		for n := range each {
			k.send(ticketOf(f*each + n))
		}
		k.written(uint64(f + 1))
	}
	k.send(ticketOf(-1)) // of no frame yet
	has := func(n int) bool { return k.sent[nameOf(ticketOf(n))] != nil }
	first := func() int {
		for n := range frames * each {
			if has(n) {
				return n
			}
		}
		return -1
	}
	for _, tt := range []struct{ acked, first int }{
		{0, 0},
		{maxTexts / each, 0},      // fewer than the bound
		{maxTexts/each + 1, 0},    // without the first frame it would be fewer
		{maxTexts/each + 2, each}, // without it there are as many, and some
		{maxTexts/each + 3, 2 * each},
	} {
		k.acknowledged(uint64(tt.acked))
		if got := first(); got != tt.first || !has(-1) {
			t.Errorf("%d frames acknowledged: from ticket %d on, expected %d; the pending one %v", tt.acked, got, tt.first, has(-1))
		}
	}
	if len(k.sent) != len(k.queue) || k.acked != len(k.queue)-1 {
		t.Errorf("%d tickets, %d in the queue, %d acknowledged", len(k.sent), len(k.queue), k.acked)
	}
}

// A ticket that was sent twice stays until the second one is forgotten.
func TestTicketSentTwice(t *testing.T) {
	var k texts
	k.send(ticketOf(1))
	k.written(1)
	k.send(ticketOf(1))
	for n := range maxTexts - 1 {
		k.send(ticketOf(2 + n))
	}
	k.written(2)
	k.acknowledged(2)
	if k.sent[nameOf(ticketOf(1))] == nil || len(k.queue) != maxTexts {
		t.Fatalf("%d in the queue, the ticket is gone", len(k.queue))
	}
	for n := range maxTexts {
		k.send(ticketOf(maxTexts + 2 + n))
	}
	k.written(3)
	k.acknowledged(3)
	if k.sent[nameOf(ticketOf(1))] != nil {
		t.Error("the ticket is never forgotten")
	}
}

func TestTicketsInHandshakes(t *testing.T) {
	message := func(typ byte, nonce int, ticket []byte, more string) []byte {
		b := append([]byte{0, 0, 1, 0, 9, 9, 9, 9, byte(nonce)}, bytes.Repeat([]byte{5}, nonce)...)
		b = binary.BigEndian.AppendUint16(b, uint16(len(ticket)))
		b = append(append(b, ticket...), more...)
		return append([]byte{typ, 0, byte(len(b) >> 8), byte(len(b))}, b...)
	}
	of := func(n int) []byte { return bytes.Repeat([]byte{byte(n)}, n) }
	good := message(4, 8, of(200), "\x00\x00")
	for name, tt := range map[string]struct {
		b    []byte
		want []int
	}{
		"one":              {good, []int{200}},
		"two":              {slices.Concat(good, message(4, 0, of(100), "")), []int{200, 100}},
		"another message":  {slices.Concat(message(24, 8, of(200), ""), good), []int{200}},
		"the shortest":     {message(4, 1, of(minText), ""), []int{minText}},
		"too short":        {message(4, 1, of(minText-1), ""), nil},
		"the longest":      {message(4, 1, of(maxText), ""), []int{maxText}},
		"too long":         {message(4, 1, of(maxText+1), ""), nil},
		"cut":              {good[:len(good)-1], nil},
		"past the message": {append(message(4, 255, nil, "")[:20], good...), nil},
		"no nonce":         {[]byte{4, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 0}, nil},
		"nothing":          {nil, nil},
	} {
		var got []int
		ticketsIn(tt.b, func(ticket []byte) { got = append(got, len(ticket)) })
		if fmt.Sprint(got) != fmt.Sprint(tt.want) {
			t.Errorf("%s: %v, expected %v", name, got, tt.want)
		}
	}
}

// Only a ticket that the peer sent goes by name, and comes back as it was.
func TestTicketByName(t *testing.T) {
	ticket := ticketOf(1)
	payload := slices.Concat([]byte("before"), ticket, []byte("behind"))
	here, there := NewTable(Config{}, 1), NewTable(Config{}, 1)
	conn := here.add(&parsers.FlowKey{}, true)
	there.room.texts.send(ticket)
	if _, _, _, ok := conn.AppendHello(nil, payload, 6, 6+len(ticket)); ok {
		t.Fatal("a ticket that nobody sent goes by name")
	}
	here.room.texts.receive(ticket)
	opened, prefix, named, ok := conn.AppendHello(nil, payload, 6, 6+len(ticket))
	if !ok || !named || len(opened) != prefix+6+TicketNamed+6 {
		t.Fatalf("%v, named %v, %d bytes", ok, named, len(opened))
	}
	s := Sealer{room: &there.room}
	if got, err := s.Seal(nil, opened); err != nil || !bytes.Equal(got, payload) {
		t.Errorf("%q, %v", got, err)
	}
	there.Begin(new(Stats)) // the peer knows nothing any more
	if _, err := s.Seal(nil, opened); err == nil {
		t.Error("a ticket of an epoch before is known")
	}
}

// A ClientHello whose name another text has is not marked.
func TestNameThatIsTaken(t *testing.T) {
	hello := append([]byte{22, 3, 1, 0, 60, 1, 0, 0, 56, 3, 3}, make([]byte, 54)...)
	for name, tt := range map[string]struct {
		other []byte
		ok    bool
	}{"by nobody": {nil, true}, "by itself": {hello[HeadLen:], true}, "by another": {[]byte("another text"), false}} {
		table := NewTable(Config{}, 1)
		c := table.add(&parsers.FlowKey{}, true)
		if tt.other != nil {
			table.room.texts.sent = map[textName]*text{nameOf(hello[HeadLen:]): {bytes: tt.other, times: 1}}
		}
		if _, _, _, ok := c.AppendHello(nil, hello, 0, 0); ok != tt.ok {
			t.Errorf("taken %s: marked %v", name, ok)
		}
	}
}
