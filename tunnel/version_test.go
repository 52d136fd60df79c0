package tunnel

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
)

// other is what a gateway of another version has in place of laneVersion.
const other = laneVersion + 1

// A logged collects what a tunnel logs from INFO on.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// lines returns those that have all of the words.
func (l *logged) lines(words ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.b.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

// wantOnce expects one line at WARN, and that it has some words.
func (l *logged) wantOnce(t *testing.T, words ...string) {
	t.Helper()
	warnings := l.lines("level=WARN")
	if len(warnings) != 1 || len(l.lines(append(words, "level=WARN")...)) != 1 {
		t.Errorf("not told of %q once, but:\n%s", words, strings.Join(warnings, ""))
	}
	if n := len(l.lines()); n > 3 {
		t.Errorf("%d lines", n)
	}
}

// A stranger is the other end's key and TLS configuration, in which a test may
// change what the two ends agree on.
func stranger(t *testing.T, key Key, alpn string) *tls.Config {
	t.Helper()
	cert, err := certificate(key)
	if err != nil {
		t.Fatal(err)
	}
	conf := tlsConfig(cert, nil)
	conf.NextProtos = []string{alpn}
	return conf
}

// listenStrangely is a gateway that listens and is of another version: the byte
// with which it welcomes a caller. It tells
// how connections over QUIC end.
func listenStrangely(t *testing.T, c Carrier, conf *tls.Config, version byte, ends chan<- error) string {
	t.Helper()
	if c == QUIC {
		ln, err := quic.ListenAddr("127.0.0.1:0", conf, &quic.Config{MaxIncomingStreams: 4})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ln.Close() })
		go func() {
			for {
				conn, err := ln.Accept(context.Background())
				if err != nil {
					return
				}
				if s, err := conn.OpenUniStream(); err == nil {
					s.Write([]byte{version})
					s.Close()
				}
				<-conn.Context().Done()
				ends <- context.Cause(conn.Context())
			}
		}()
		return ln.Addr().String()
	}
	ln, err := tls.Listen("tcp", "127.0.0.1:0", conf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				if _, err := io.ReadFull(conn, make([]byte, headerLen)); err != nil {
					return
				}
				conn.Write([]byte{version, byte(ReasonVersion)})
			}()
		}
	}()
	return ln.Addr().String()
}

// A gateway that calls one of another version says so, once however often it
// calls, and its status says so too.
func TestCallsAnotherVersion(t *testing.T) {
	for name, tt := range map[string]struct {
		alpn    string
		version byte
		say     string
	}{
		"ALPN":       {"sheaf/9", laneVersion, `does not speak \"sheaf/1\"`},
		"lane newer": {alpn, other, "lanes of version 1 here, 2 there; upgrade this one"},
		"lane older": {alpn, 0, "lanes of version 1 here, 0 there; upgrade the other one"},
	} {
		for _, c := range []Carrier{QUIC, TLS} {
			t.Run(name+" over "+c.String(), func(t *testing.T) {
				key, ends, log := newKey(t), make(chan error, 100), &logged{}
				a := newTunnel(t, Config{
					Key: newKey(t), Carriers: []Carrier{c}, Logger: slog.New(slog.NewTextHandler(log, nil)),
					Peers: []PeerConfig{{Name: "b", Fingerprint: key.Fingerprint(), Endpoint: listenStrangely(t, c, stranger(t, key, tt.alpn), tt.version, ends)}},
				})
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				go func() {
					for a.Peer("b").Status().Attempts < 3 && ctx.Err() == nil {
						time.Sleep(5 * time.Millisecond)
					}
					cancel()
				}()
				_, err := a.Peer("b").Lane(ctx, ClassMessages)
				if !errors.Is(err, ErrProtocol) || !errors.Is(err, ReasonVersion) {
					t.Errorf("error %v", err)
				}
				s := a.Peer("b").Status()
				if s.Connected || s.Attempts < 3 || !errors.Is(s.LastError, ReasonVersion) {
					t.Errorf("status %+v", s)
				}
				log.wantOnce(t, "no common version", tt.say)
				if c == QUIC && tt.version != laneVersion {
					if told := resetOf(<-ends); !told.Remote || told.Reason != ReasonVersion {
						t.Errorf("the other end is told of %v", told)
					}
				}
			})
		}
	}
}

// callStrangely calls a gateway as one of another version would, and returns why
// it gave up.
func callStrangely(t *testing.T, c Carrier, conf *tls.Config, version byte, to string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if c == QUIC {
		conn, err := quic.DialAddr(ctx, to, conf, &quic.Config{MaxIncomingUniStreams: 1})
		if err != nil {
			return err
		}
		s, err := conn.AcceptUniStream(ctx)
		if err != nil {
			return err
		}
		b, err := io.ReadAll(s)
		if err != nil || len(b) != 1 || b[0] != laneVersion {
			t.Errorf("welcome %x, %v", b, err)
		}
		conn.CloseWithError(quic.ApplicationErrorCode(ReasonVersion), "")
		return ReasonVersion
	}
	raw, err := net.Dial("tcp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	conn := tls.Client(raw, conf)
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	b := appendHeader(nil, header{})
	b[0] = version
	if _, err := conn.Write(b); err != nil {
		return err
	}
	var answer [answerLen]byte
	if _, err := io.ReadFull(conn, answer[:]); err != nil {
		return err
	}
	if answer[0] != laneVersion {
		t.Errorf("answer %v", answer)
	}
	return Reason(answer[1])
}

// So does one that is called.
func TestCalledByAnotherVersion(t *testing.T) {
	for name, tt := range map[string]struct {
		alpn string
		say  string
		quic string
	}{
		"ALPN": {"sheaf/9", "sheaf/9", "sheaf/9"},
		"lane": {alpn, "lanes of version 1 here, 2 there; upgrade this one", "does not open lanes of version 1"},
	} {
		for _, c := range []Carrier{QUIC, TLS} {
			t.Run(name+" over "+c.String(), func(t *testing.T) {
				key, log := newKey(t), &logged{}
				b := newTunnel(t, Config{
					Key: newKey(t), Carriers: []Carrier{c}, Listen: "127.0.0.1:0", Logger: slog.New(slog.NewTextHandler(log, nil)),
					Peers: []PeerConfig{{Name: "a", Fingerprint: key.Fingerprint()}},
				})
				for calls := range uint64(3) {
					err := callStrangely(t, c, stranger(t, key, tt.alpn), other, b.Addr().String())
					if name == "lane" && err != ReasonVersion || name == "ALPN" && !strings.Contains(dialError(err, Fingerprint{}).Error(), "does not speak") {
						t.Errorf("the caller sees %v", err)
					}
					eventually(t, "the end of the call", func() bool { return b.Refused() > calls })
				}
				say := tt.say
				if c == QUIC {
					say = tt.quic
				}
				log.wantOnce(t, "no common version", say)
				if b.Refused() != 3 || b.Peer("a").Status().Connected {
					t.Errorf("%d calls refused; %+v", b.Refused(), b.Peer("a").Status())
				}
			})
		}
	}
}

// A lane that is declined lets the other end read what was written, and why, where
// the carrier can tell; and the next one waits.
func TestDecline(t *testing.T) {
	eachCarrier(t, func(t *testing.T, c []Carrier) {
		p := newPair(t, c, nil)
		for _, why := range []error{ReasonVersion, nil} {
			a, b := p.lanes(t, ClassMessages)
			for l, text := range map[*Lane]string{a: "I speak 1", b: "I speak 2"} {
				if _, err := l.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			var got [9]byte
			if _, err := io.ReadFull(b, got[:]); err != nil || string(got[:]) != "I speak 1" {
				t.Fatalf("%q, %v", got, err)
			}
			b.Decline(why)
			a.SetReadDeadline(time.Now().Add(patience))
			rest, err := io.ReadAll(a)
			if told := why != nil && c[0] == QUIC; string(rest) != "I speak 2" || told != errors.Is(err, ReasonVersion) || !told && err != nil {
				t.Fatalf("%q, %v", rest, err)
			}
			a.Decline(why)
		}
		begin := time.Now()
		p.lanes(t, ClassMessages)
		if took := time.Since(begin); took < declineMin {
			t.Errorf("the next lane came after %v", took)
		}
	})
}
