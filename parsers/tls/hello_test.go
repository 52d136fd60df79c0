package tls

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"testing"
)

const suiteNumber = 0x1302

// helloOf is a hello of a type, with a random, a session id and what follows it.
func helloOf(typ byte, random string, session int, tail string) []byte {
	body := "\x03\x03" + random + string(rune(session)) + string(bytes.Repeat([]byte{'s'}, session)) + tail
	n := len(body)
	return record(Handshake, string([]byte{typ, byte(n >> 16), byte(n >> 8), byte(n)})+body)
}

const (
	clientTail = "\x00\x02\x13\x02\x01\x00" // one suite, one compression method
	serverTail = "\x13\x02\x00"
)

func TestHelloRetryRandomIsSHA256(t *testing.T) {
	if retryRandom != sha256.Sum256([]byte("HelloRetryRequest")) {
		t.Error("retryRandom is not the SHA-256 of HelloRetryRequest")
	}
}

// random32 is a random that no other has.
var random32 = string(data(RandomLen)[headSize:])

func TestClientRandom(t *testing.T) {
	hello := helloOf(1, random32, 32, clientTail)
	change := func(at int, to byte) []byte {
		b := bytes.Clone(hello)
		b[at] = to
		return b
	}
	for _, tt := range []struct {
		name string
		b    []byte
		ok   bool
	}{
		{"whole", hello, true},
		{"followed by another record", cat(hello, hello), true},
		{"without a session id", helloOf(1, random32, 0, clientTail), true},
		{"record of TLS 1.0, as first ones are", version(1, bytes.Clone(hello)), true},
		{"cut behind the random", hello[:43], true},
		{"cut in the random", hello[:42], false},
		{"nothing", nil, false},
		{"longer than its record", cat(record(Handshake, string(hello[5:43])), hello), true},
		{"random in two records", cat(record(Handshake, string(hello[5:42])), hello), false},
		{"a ServerHello", change(5, 2), false},
		{"application data", change(0, 23), false},
		{"version of the record", change(1, 4), false},
		{"version of the hello", change(9, 2), false},
		{"too short a message", change(8, 40), false},
		{"the shortest message", change(8, 41), true},
		{"too long a record", change(3, 0x42), false},
	} {
		random, ok := ClientRandom(tt.b)
		if ok != tt.ok || ok != (string(random[:]) == random32) {
			t.Errorf("%s: %x, %v; want %v", tt.name, random, ok, tt.ok)
		}
	}
}

func TestServerHello(t *testing.T) {
	hello := helloOf(2, random32, 32, serverTail)
	change := func(at int, to byte) []byte {
		b := bytes.Clone(hello)
		b[at] = to
		return b
	}
	for _, tt := range []struct {
		name string
		b    []byte
		ok   bool
	}{
		{"whole", hello, true},
		{"followed by another record", cat(hello, data(100)), true},
		{"without a session id", helloOf(2, random32, 0, serverTail), true},
		{"cut behind the suite", hello[:78], true},
		{"cut in the suite", hello[:77], false},
		{"cut before the session id", hello[:43], false},
		{"cut in the random", hello[:42], false},
		{"nothing", nil, false},
		{"session id of 33 bytes", helloOf(2, random32, 33, serverTail), false},
		{"suite in the next record", cat(record(Handshake, string(hello[5:77])), hello), false},
		{"a ClientHello", change(5, 1), false},
		{"too short a message", change(8, 37), false},
		{"the shortest message", change(8, 38), true},
	} {
		random, number, retry, ok := ServerHello(tt.b)
		if ok != tt.ok || retry || ok != (string(random[:]) == random32) || ok != (number == suiteNumber) {
			t.Errorf("%s: %x, %04x, %v, %v; want %v", tt.name, random, number, retry, ok, tt.ok)
		}
	}
}

func TestHelloRetryRequest(t *testing.T) {
	if _, number, retry, ok := ServerHello(helloOf(2, string(retryRandom[:]), 32, serverTail)); number != suiteNumber || !retry || !ok {
		t.Errorf("suite %04x, retry %v, %v", number, retry, ok)
	}
}

// FuzzHello holds that a hello is read from its first bytes as from all of them, and that
// what is read stands in it.
func FuzzHello(f *testing.F) {
	f.Add(helloOf(1, random32, 32, clientTail), 43)
	f.Add(helloOf(2, random32, 32, serverTail), 78)
	f.Add(helloOf(2, string(retryRandom[:]), 0, serverTail), 46)
	f.Fuzz(func(t *testing.T, b []byte, cut int) {
		random, ok := ClientRandom(b)
		if ok && !bytes.Equal(random[:], b[11:43]) {
			t.Fatalf("random %x", random)
		}
		server, number, _, isServer := ServerHello(b)
		if isServer && (!bytes.Equal(server[:], b[11:43]) || !bytes.Contains(b[44:], binary.BigEndian.AppendUint16(nil, number))) {
			t.Fatalf("random %x, suite %04x", server, number)
		}
		if ok && isServer {
			t.Fatal("a hello of both")
		}
		if cut < 0 || cut > len(b) {
			return
		}
		if again, still := ClientRandom(b[:cut]); still && (!ok || again != random) {
			t.Fatalf("cut at %d: %x, was %x, %v", cut, again, random, ok)
		}
		if _, again, _, still := ServerHello(b[:cut]); still && (!isServer || again != number) {
			t.Fatalf("cut at %d: %04x, was %04x, %v", cut, again, number, isServer)
		}
	})
}
