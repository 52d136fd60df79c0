package tunnel

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestHeaderRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := header{class: Class(rapid.IntRange(0, int(NumClasses)-1).Draw(t, "class")), epoch: rapid.Uint64().Draw(t, "epoch")}
		copy(h.instance[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "instance"))
		b := appendHeader([]byte("before"), h)[6:]
		r := bytes.NewReader(append(b, "after"...))
		got, err := readHeader(r)
		if err != nil || got != h || r.Len() != 5 {
			t.Fatalf("%v, %v, %d bytes left", cmp.Diff(h, got, cmp.AllowUnexported(header{})), err, r.Len())
		}
		cut := b[:rapid.IntRange(0, headerLen-1).Draw(t, "cut")]
		if _, err := readHeader(bytes.NewReader(cut)); err != io.EOF && err != io.ErrUnexpectedEOF {
			t.Fatalf("cut: %v", err)
		}
	})
}

func TestHeaderOfAnotherVersion(t *testing.T) {
	b := appendHeader(nil, header{})
	b[0] = laneVersion + 1
	if _, err := readHeader(bytes.NewReader(b)); !errors.Is(err, ErrProtocol) || reasonOf(err) != ReasonVersion {
		t.Errorf("version: %v", err)
	}
	b[0], b[1] = laneVersion, byte(NumClasses)
	if _, err := readHeader(bytes.NewReader(b)); !errors.Is(err, ErrProtocol) || reasonOf(err) != ReasonProtocol {
		t.Errorf("class: %v", err)
	}
}

func TestRefusedIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		r := refused{log: slog.New(slog.NewTextHandler(&out, nil))}
		note := func(port int, err error, times int) {
			for range times {
				r.note(&net.UDPAddr{Port: port}, err)
				time.Sleep(25 * time.Millisecond)
			}
		}
		lines := func(want int) {
			t.Helper()
			if n := strings.Count(out.String(), "\n"); n != want {
				t.Errorf("%d lines, want %d\n%s", n, want, &out)
			}
			out.Reset()
		}
		note(1, ErrUnknownPeer, 1000) // 25 s: at 0 and 10
		if !strings.Contains(out.String(), "more_since_last=399") {
			t.Error(out.String())
		}
		lines(2)
		note(2, ErrUnknownPeer, 2000) // 75 s: at 30 and 70
		lines(2)
		note(2, ErrProtocol, 400) // something else: at 80
		lines(1)
		if r.count() != 3400 {
			t.Errorf("%d counted", r.count())
		}
		for range 50 {
			note(2, ErrProtocol, 1)
			time.Sleep(refusedMost)
		}
		if n := strings.Count(out.String(), "\n"); n < 48 {
			t.Errorf("%d lines in 50 h", n)
		}
	})
}

func TestReasonText(t *testing.T) {
	seen := map[string]bool{}
	for r := range ReasonPath + 1 {
		if s := r.String(); s == "" || seen[s] {
			t.Errorf("reason %d is %q", uint32(r), s)
		} else {
			seen[s] = true
		}
	}
	if len(reasons) != int(ReasonPath)+1 || Reason(64).String() != "reason 64" {
		t.Errorf("%d texts; %v", len(reasons), Reason(64))
	}
}

func TestIPv6(t *testing.T) {
	ln, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("needs IPv6 on loopback: %v", err)
	}
	ln.Close()
	eachCarrier(t, func(t *testing.T, c []Carrier) {
		v4a, _ := newPair(t, c, nil).lanes(t, ClassMessages)
		p := newPair(t, c, func(_, b *Config) { b.Listen = "[::1]:0" })
		a, b := p.lanes(t, ClassMessages)
		say(t, a, b, "x")
		if a.Overhead() != v4a.Overhead()+20 {
			t.Errorf("overhead %d, %d over IPv4", a.Overhead(), v4a.Overhead())
		}
	})
}
