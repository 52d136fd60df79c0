package pcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestWriterHeader(t *testing.T) {
	var out bytes.Buffer
	if _, err := NewWriter(&out); err != nil {
		t.Fatal(err)
	}
	want := hexBytes("4d3cb2a1 0200 0400 00000000 00000000 00000400 65000000")
	if diff := cmp.Diff(want, out.Bytes()); diff != "" {
		t.Errorf("header differs (-want +got):\n%s", diff)
	}
}

// drawIP draws an IP packet whose length field is right or, for IPv4, zero.
func drawIP(t *rapid.T) []byte {
	body := rapid.SliceOfN(rapid.Byte(), 0, 2000).Draw(t, "body")
	if rapid.Bool().Draw(t, "IPv6") {
		b := append(make([]byte, 40), body...)
		b[0] = 0x60 | rapid.ByteMax(15).Draw(t, "low bits")
		binary.BigEndian.PutUint16(b[4:], uint16(len(body)))
		return b
	}
	b := append(make([]byte, 20), body...)
	b[0] = 0x45
	if rapid.Bool().Draw(t, "length known") {
		binary.BigEndian.PutUint16(b[2:], uint16(len(b)))
	}
	return b
}

func TestWriterRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		w, err := NewWriter(&out)
		if err != nil {
			t.Fatal(err)
		}
		var want []Packet
		for range rapid.IntRange(0, 20).Draw(t, "packets") {
			data := drawIP(t)
			when := time.Unix(rapid.Int64Range(0, math.MaxUint32).Draw(t, "s"), rapid.Int64Range(0, 999_999_999).Draw(t, "ns")).UTC()
			if err := w.Write(when, data); err != nil {
				t.Fatal(err)
			}
			want = append(want, Packet{Number: len(want) + 1, Time: when, Data: data, WireLen: int64(len(data))})
		}
		r, err := NewReader(&out)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range want {
			got, err := r.Next()
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("packet differs (-written +read):\n%s", diff)
			}
		}
		if _, err := r.Next(); err != io.EOF {
			t.Fatalf("got %v after the last packet", err)
		}
	})
}

func TestWriterTime(t *testing.T) {
	var out bytes.Buffer
	w, err := NewWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(time.Time{}, ip4); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []time.Time{time.Unix(-1, 0), time.Unix(1<<32, 0)} {
		if err := w.Write(bad, ip4); err == nil {
			t.Errorf("no error for %v", bad)
		}
	}
	if err := w.Write(at, make([]byte, recordLimit+1)); err == nil {
		t.Error("no error for an oversized packet")
	}
	got, err := readAll(t, out.Bytes())
	if err != nil || len(got) != 1 || !got[0].Time.Equal(time.Unix(0, 0)) {
		t.Errorf("got %+v, %v", got, err)
	}
}

// A failingWriter takes n writes.
type failingWriter struct{ n int }

var errFull = errors.New("no space left")

func (f *failingWriter) Write(p []byte) (int, error) {
	if f.n--; f.n < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestWriterFails(t *testing.T) {
	if _, err := NewWriter(&failingWriter{}); !errors.Is(err, errFull) {
		t.Errorf("file header: got %v", err)
	}
	w, err := NewWriter(&failingWriter{n: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(at, ip4); !errors.Is(err, errFull) {
		t.Errorf("packet: got %v", err)
	}
}

func TestWriterAllocations(t *testing.T) {
	w, err := NewWriter(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if got := testing.AllocsPerRun(100, func() {
		if err := w.Write(at, ip4); err != nil {
			t.Fatal(err)
		}
	}); got != 0 {
		t.Errorf("%v allocations in a Write, want 0", got)
	}
}
