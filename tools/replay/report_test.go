package replay

import (
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/parsers/builtin"
)

// run replays packets, a millisecond apart.
func run(t *testing.T, packets ...[]byte) *Report {
	t.Helper()
	cfg := config(5 * time.Millisecond)
	cfg.Lane.Registry = builtin.Registry()
	r, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range packets {
		if err := r.Add(time.Duration(i)*time.Millisecond, p); err != nil {
			t.Fatal(err)
		}
	}
	err = r.Finish()
	p := r.Report("", err)
	if !p.Exact() {
		t.Errorf("not exact: %s %s", p.Fault, p.Difference)
	}
	return p
}

// stream cuts payloads of a connection to a broker's port into segments, each
// acknowledged.
func stream(client, port uint16, payloads ...string) (out [][]byte) {
	seq := uint32(1)
	for i, p := range payloads {
		out = append(out, segment(client, port, false, uint16(i), seq, p))
		seq += uint32(len(p))
		ack := segment(port, client, true, uint16(i), 1, "")
		binary.BigEndian.PutUint32(ack[28:], seq)
		out = append(out, ack)
	}
	return out
}

// TestOddPorts holds that the ports without a known protocol are those, and not
// ports of which the content said what it was.
func TestOddPorts(t *testing.T) {
	record := "\x17\x03\x03\x00\x10" + "0123456789abcdef"
	zmtp := "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL" + string(make([]byte, 48))
	packets := stream(40000, 443, record, record, record)                    // TLS, which says so
	packets = append(packets, stream(40001, 5556, zmtp, "\x00\x05hello")...) // ZMTP
	packets = append(packets, stream(40002, 7777, "no known protocol", "nor here")...)
	packets = append(packets, stream(40003, 443, "not TLS on its port")...)
	p := run(t, packets...)
	got := fmt.Sprint(p.OddPorts)
	if want := fmt.Sprint([]OddPort{{6, 7777, 4*40 + 17 + 8}, {6, 443, 2*40 + 19}}); got != want {
		t.Errorf("ports %v, want %v", got, want)
	}
}

// TestOddPortsAfterForgetting holds that what is said of ports outlives the flows.
func TestOddPortsAfterForgetting(t *testing.T) {
	s := newSides(builtin.Registry(), Endpoint{})
	for _, p := range stream(40002, 7777, "no known protocol") {
		s.flow(p)
	}
	known := s.flow(segment(40000, 443, false, 1, 1, "x"))
	known.of.recognised = true
	s.forget()
	s.flow(segment(40002, 7777, false, 1, 1, "more"))
	if got, want := fmt.Sprint(s.oddPorts()), fmt.Sprint([]OddPort{{6, 7777, 3*40 + 17 + 4}}); got != want {
		t.Errorf("ports %v, want %v", got, want)
	}
}

// TestEventMessages holds that "a message" divides by what carries content, also
// where no event can be told.
func TestEventMessages(t *testing.T) {
	greeting := "\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL" + string(make([]byte, 48))
	ready := "\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03PUB"
	zmtp := []string{greeting, ready}
	for i := range 20 {
		zmtp = append(zmtp, fmt.Sprintf("\x00\x05no%03d", i))
	}
	upgrade := "GET /x HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
	socket := []string{upgrade}
	for range 7 {
		socket = append(socket, "\x81\x85\x00\x00\x00\x00hello")
	}
	socket = append(socket, "\x89\x80\x00\x00\x00\x00") // a ping
	redis := []string{"*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n", "*1\r\n$4\r\nPING\r\n", "*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$1\r\nx\r\n", "*1\r\n$4\r\nQUIT\r\n"}
	for _, tt := range []struct {
		protocol        string
		packets         [][]byte
		messages, event uint64
	}{
		{"zmtp", stream(40000, 5556, zmtp...), 22, 20},
		{"websocket", stream(40000, 8000, socket...), 9, 7},
		{"redis", stream(40000, 6379, redis...), 4, 1},
	} {
		p := run(t, tt.packets...)
		if up := p.Directions.Up; up.Messages != tt.messages || up.EventMessages != tt.event || p.Protocols[tt.protocol] == nil {
			t.Errorf("%s: %d messages, %d of them about something, want %d and %d", tt.protocol, up.Messages, up.EventMessages, tt.messages, tt.event)
		}
	}
}

// TestManyTopics holds that of more topics than are counted apart the heaviest are
// listed, whenever they began, and that nothing is lost of the others.
func TestManyTopics(t *testing.T) {
	const light, heavy, each = 20_000, 10, 100
	publish := func(topic, body string) string {
		return fmt.Sprintf("\x30%c\x00%c%s%s", 2+len(topic)+len(body), len(topic), topic, body)
	}
	var payloads []string
	for i := range light {
		payloads = append(payloads, publish(fmt.Sprintf("light/%05d", i), "x"))
		if i >= light-heavy*each {
			payloads = append(payloads, publish(fmt.Sprintf("heavy/%d", i%heavy), "0123456789"))
		}
	}
	p := run(t, stream(40000, 1883, payloads...)...)
	mqtt := p.Protocols["mqtt"]
	if mqtt.Messages != light+heavy*each || p.Directions.Up.EventMessages != mqtt.Messages {
		t.Errorf("%d messages, %d about something", mqtt.Messages, p.Directions.Up.EventMessages)
	}
	listed := uint64(0)
	for _, e := range mqtt.Events {
		listed += e.Messages
	}
	if listed+mqtt.Other.Messages != mqtt.Messages || mqtt.Other.Messages < light/2 {
		t.Errorf("%d messages are listed, %d others", listed, mqtt.Other.Messages)
	}
	for i := range heavy {
		name := fmt.Sprintf("heavy/%d", i)
		if e := mqtt.Events[name]; e == nil || e.Messages != each {
			t.Errorf("%s: %+v, want %d messages", name, e, each)
		}
	}
}

// TestStatsAreBounded holds that counts of counts are bounded likewise, and add up.
func TestStatsAreBounded(t *testing.T) {
	var all aggregate.Stats
	for i := range 100 {
		part := aggregate.Stats{Messages: make(map[aggregate.EventKey]*aggregate.EventStats)}
		for k := range 1000 {
			part.Messages[aggregate.EventKey{Protocol: 1, Name: 3, Event: fmt.Sprint(i, k)}] = &aggregate.EventStats{Messages: 1, BytesIn: 10}
		}
		part.Messages[aggregate.EventKey{Protocol: 1, Name: 3, Event: "heavy"}] = &aggregate.EventStats{Messages: 1, BytesIn: 1000}
		all.Accumulate(&part)
	}
	sum := uint64(0)
	for _, e := range all.Messages {
		sum += e.Messages
	}
	if sum != 100*1001 || len(all.Messages) > 1<<14+1 {
		t.Errorf("%d messages in %d rows", sum, len(all.Messages))
	}
	if e := all.Messages[aggregate.EventKey{Protocol: 1, Name: 3, Event: "heavy"}]; e == nil || e.Messages != 100 {
		t.Errorf("the heavy one: %+v", e)
	}
}
