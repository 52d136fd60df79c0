package codec

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/parsers"
)

// A fakeSealer seals the payloads of flows of which it was told a byte: each byte of a
// payload has that added to it, and two more follow. It notes what it is called with.
type fakeSealer struct {
	odd    int            // ports with this remainder by 2 are opened
	secret map[uint16]int // what segments of a client's port are to tell, in how many bytes
	told   map[parsers.FlowKey][]byte
	passed []string
	forgot []uint16
	err    error
}

func newFakeSealer() *fakeSealer {
	return &fakeSealer{odd: 1, secret: map[uint16]int{}, told: map[parsers.FlowKey][]byte{}}
}

func client(key *parsers.FlowKey) uint16 { return max(key.SrcPort, key.DstPort) }

func (s *fakeSealer) opens(key *parsers.FlowKey) bool { return int(client(key))%2 == s.odd }

func (s *fakeSealer) tells(seg *parsers.Segment) []byte {
	n := s.secret[client(&seg.Key)]
	delete(s.secret, client(&seg.Key))
	return bytes.Repeat([]byte{0xa5}, n)
}

func (s *fakeSealer) open(key *parsers.FlowKey, payload []byte) []byte {
	b := bytes.Clone(payload[:len(payload)-2])
	for i := range b {
		b[i] -= byte(client(key))
	}
	return b
}

func (s *fakeSealer) sealed(port uint16, opened []byte) []byte {
	b := bytes.Clone(opened)
	for i := range b {
		b[i] += byte(port)
	}
	return append(b, byte(port>>8), byte(port))
}

func (s *fakeSealer) Tell(key *parsers.FlowKey, secrets []byte) error {
	s.told[*key] = bytes.Clone(secrets)
	return s.err
}

func (s *fakeSealer) Seal(dst []byte, key *parsers.FlowKey, opened []byte) ([]byte, error) {
	return append(dst, s.sealed(client(key), opened)...), s.err
}

func (s *fakeSealer) Passed(key *parsers.FlowKey, flags uint8, payload []byte) {
	s.passed = append(s.passed, fmt.Sprintf("%d flags %#x %q", client(key), flags, payload))
}

func (s *fakeSealer) Forget(key *parsers.FlowKey) { s.forgot = append(s.forgot, client(key)) }

// sealedFanout sends one message of the broker's to n clients, sealed for those whose
// connections are opened, and returns the size of the frame.
func sealedFanout(x *exchange, s *fakeSealer, n, round int) int {
	for i := range n {
		payload := codectest.Publish("plant/7", fmt.Sprint("reading ", round), 0)
		if port := uint16(40000 + i); int(port)%2 == s.odd {
			payload = s.sealed(port, payload)
		}
		x.add(0, codectest.Segment{
			Client: 1, Port: i, Down: true, Flags: 0x18, Window: 500,
			Seq: uint32(1000 + 100*round), Ack: 1, Payload: payload,
		}.Packet())
	}
	x.now += 20 * ms
	x.flush(0)
	return x.last[0].size()
}

// Messages to many are merged though each has been sealed for its own connection, and all
// packets come out as they were: opened ones in one group, the others in another.
func TestOpenedPayloads(t *testing.T) {
	s := newFakeSealer()
	x := newExchange(t, Config{Sealer: s})
	size := 0
	for round := range 20 {
		size = sealedFanout(x, s, 20, round)
		if n := len(x.last[0].groups); n != 2 {
			t.Fatalf("round %d: %d groups", round, n)
		}
	}
	if size > 14 {
		t.Errorf("the last round took %d bytes", size)
	}
}

// What an opened group teaches is about the segments as they were: the length is the
// sealed payload's, or sequence numbers and acknowledgements would be missed.
func TestOpenedPayloadsTeachSealedLengths(t *testing.T) {
	s := newFakeSealer()
	x := newExchange(t, Config{Sealer: s})
	sealedFanout(x, s, 2, 0)
	end := uint32(1000 + len(codectest.Publish("plant/7", "reading 0", 0)))
	for i, c := range x.encoder(0).contexts {
		want := end
		if int(c.key.DstPort)%2 == s.odd {
			want += 2
		}
		if c.end != want {
			t.Errorf("context %d: ends at %d, expected %d", i, c.end, want)
		}
	}
}

// Secrets are told once, come before the segment is sealed, are overwritten behind, and of
// any length up to the bound.
func TestSecretsAreTold(t *testing.T) {
	s := newFakeSealer()
	x := newExchange(t, Config{Sealer: s})
	for i, n := range []int{1, 53, maxSecrets} {
		s.secret[uint16(40000+i)] = n
	}
	sealedFanout(x, s, 4, 0)
	for key, b := range s.told {
		want := []int{1, 53, maxSecrets}[client(&key)-40000]
		if len(b) != want || !bytes.Equal(b, bytes.Repeat([]byte{0xa5}, want)) {
			t.Errorf("port %d was told %d bytes, expected %d", client(&key), len(b), want)
		}
	}
	if len(s.told) != 3 {
		t.Fatalf("%d flows were told", len(s.told))
	}
	if g := &x.decoder(0).read; len(g.Secrets) != 0 {
		t.Error("the last group's secrets are another's")
	}
	clear(s.told)
	if sealedFanout(x, s, 4, 1); len(s.told) > 0 {
		t.Error("secrets are told again")
	}
}

// A reader overwrites what it was told behind the call that takes it.
func TestSecretsAreOverwritten(t *testing.T) {
	s := newFakeSealer()
	x := newExchange(t, Config{Sealer: s})
	s.secret[40001] = 48
	x.send(0, codectest.Segment{Client: 1, Port: 1, Down: true, Flags: 0x10, Seq: 1}.Packet())
	if got := x.decoder(0).read.Secrets; len(got) != 48 || !bytes.Equal(got, make([]byte, 48)) {
		t.Errorf("%x is left of the secrets", got)
	}
}

// More secrets than the bound are a writer's mistake, and a reader refuses them.
func TestTooManySecrets(t *testing.T) {
	s := newFakeSealer()
	x := newExchange(t, Config{Sealer: s})
	s.secret[40001] = maxSecrets + 1
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, ErrFrame) {
			t.Errorf("%v", err)
		}
	}()
	x.send(0, codectest.Segment{Client: 1, Port: 1, Down: true, Flags: 0x10, Seq: 1}.Packet())
}

// What a Sealer refuses ends the epoch, in a payload as in secrets.
func TestSealerRefuses(t *testing.T) {
	for name, secrets := range map[string]int{"payload": 0, "secrets": 40} {
		s := newFakeSealer()
		x := newExchange(t, Config{Sealer: s})
		x.late = true
		if s.secret[40001] = secrets; secrets == 0 {
			delete(s.secret, 40001)
		}
		payload := s.sealed(40001, codectest.Publish("a", "b", 0))
		f := x.send(0, codectest.Segment{Client: 1, Port: 1, Down: true, Flags: 0x18, Seq: 1, Payload: payload}.Packet())
		s.err = fmt.Errorf("%w: no keys", ErrFrame)
		if _, err := x.decoder(0).Decode(f.Control, f.Literals); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Sealer is told of what begins and ends connections, sealed or not, and of handshakes
// that were not sealed; of nothing else, and of no UDP datagram.
func TestSealerIsToldWhatPasses(t *testing.T) {
	s := newFakeSealer()
	s.odd = 2 // nothing is opened
	x := newExchange(t, Config{Sealer: s})
	send := func(flags uint8, payload string) {
		x.send(0, codectest.Segment{Client: 1, Port: 1, Down: true, Flags: flags, Seq: 7, Payload: []byte(payload)}.Packet())
	}
	send(0x02, "")
	send(0x10, "")
	send(0x18, "\x16\x03\x01hello")
	send(0x18, "\x16\x03")
	send(0x18, "\x17\x03\x03data")
	send(0x11, "")
	send(0x04, "")
	want := []string{
		`40001 flags 0x2 ""`, `40001 flags 0x18 "\x16\x03\x01hello"`,
		`40001 flags 0x11 ""`, `40001 flags 0x4 ""`,
	}
	if fmt.Sprint(s.passed) != fmt.Sprint(want) {
		t.Errorf("passed:\n%q, expected\n%q", s.passed, want)
	}
}

// The end of a connection may have the last of its records.
func TestSealerIsToldOfSealedEnds(t *testing.T) {
	s := newFakeSealer()
	x := newExchange(t, Config{Sealer: s})
	payload := s.sealed(40001, codectest.Publish("a", "b", 0))
	x.send(0, codectest.Segment{Client: 1, Port: 1, Down: true, Flags: 0x19, Seq: 7, Payload: payload}.Packet())
	if want := fmt.Sprintf("[40001 flags 0x19 %q]", payload); fmt.Sprint(s.passed) != want {
		t.Errorf("passed %v, expected %s", s.passed, want)
	}
}

// A Sealer hears of each flow whose context is given to another.
func TestSealerForgets(t *testing.T) {
	s := newFakeSealer()
	x := newExchange(t, Config{Sealer: s, Limits: small(2)})
	for i := range 4 {
		x.send(0, codectest.Segment{Client: 1, Port: i, Down: true, Flags: 0x10, Seq: 1}.Packet())
	}
	if fmt.Sprint(s.forgot) != "[40000 40001]" {
		t.Errorf("forgot %v", s.forgot)
	}
}
