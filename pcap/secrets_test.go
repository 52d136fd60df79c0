package pcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sheaf/pcap/pcaptest"
)

const keyLine = "CLIENT_RANDOM 00 11\n"

// secrets is a Decryption Secrets Block.
func (n ng) secrets(kind uint32, secrets []byte, options ...[]byte) []byte {
	b := n.order.AppendUint32(nil, kind)
	b = n.order.AppendUint32(b, uint32(len(secrets)))
	b = append(b, secrets...)
	b = append(b, make([]byte, -len(secrets)&3)...)
	return n.block(blockSecrets, join(append([][]byte{b}, options...)...))
}

// keyLogs returns the key logs of a capture, each with the number of the packet that was
// read with it, and the error that ended the capture, nil at a clean end.
func keyLogs(t *testing.T, file []byte) (logs []string, at []int, err error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		return nil, nil, err
	}
	r.KeyLog(func(lines []byte) {
		logs, at = append(logs, string(lines)), append(at, r.Records()+1)
	})
	for {
		if _, err := r.Next(); err == io.EOF {
			return logs, at, nil
		} else if err != nil {
			return logs, at, err
		}
	}
}

// Secrets come before the packet behind them, of any section and in its byte order.
// Secrets of other kinds, and none at all, are nobody's.
func TestSecrets(t *testing.T) {
	long := bytes.Repeat([]byte(keyLine), 3*bufferSize/len(keyLine)) // read in parts
	var file []byte
	for _, n := range []ng{ngLittle, ngBig} {
		file = join(file,
			n.section(), n.iface(LinkRaw, 0),
			n.secrets(secretsTLS, []byte(keyLine)),
			n.enhanced(0, 1, ip4, len(ip4)),
			n.secrets(secretsTLS, []byte("a")), // padded
			n.secrets(0x57474b4c, []byte("WireGuard's")),
			n.secrets(secretsTLS, nil),
			n.secrets(secretsTLS, long, n.option(1, []byte("a comment")), n.option(0, nil)),
			n.enhanced(0, 1, ip4, len(ip4)),
			n.enhanced(0, 1, ip4, len(ip4)),
			n.secrets(secretsTLS, []byte("behind all")),
		)
	}
	logs, at, err := keyLogs(t, file)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{keyLine, "a", string(long), "behind all", keyLine, "a", string(long), "behind all"}
	if diff := cmp.Diff(want, logs); diff != "" {
		t.Errorf("secrets differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1, 2, 2, 4, 4, 5, 5, 7}, at); diff != "" {
		t.Errorf("they came before other packets (-want +got):\n%s", diff)
	}
	if got, err := readAll(t, file); err != nil || len(got) != 6 {
		t.Errorf("without a use for them: %d packets, %v", len(got), err)
	}
}

// What has been used of a key log is not left in memory.
func TestSecretsAreCleared(t *testing.T) {
	n := ngLittle
	file := join(n.section(), n.secrets(secretsTLS, bytes.Repeat([]byte(keyLine), 10_000)))
	r, err := NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	var kept []byte
	r.KeyLog(func(lines []byte) { kept = lines })
	if _, err := r.Next(); err != io.EOF {
		t.Fatal(err)
	}
	if len(kept) != 10_000*len(keyLine) || bytes.ContainsFunc(kept, func(c rune) bool { return c != 0 }) {
		t.Errorf("%d bytes are as they were", len(kept))
	}
	if bytes.Contains(r.src.buf[:cap(r.src.buf)], []byte("RANDOM")) {
		t.Error("the reader's buffer has some")
	}
}

func TestSecretsDamage(t *testing.T) {
	n := ngLittle
	head := join(n.section(), n.iface(LinkRaw, 0))
	packet := n.enhanced(0, 1, ip4, len(ip4))
	good := n.secrets(secretsTLS, []byte(keyLine))
	with := func(off int, v uint32) []byte {
		b := slices.Clone(good)
		binary.LittleEndian.PutUint32(b[off:], v)
		return b
	}
	// huge is a block that claims to be of the size of its secrets; cut short.
	huge := func(size uint32) []byte {
		b := with(4, size+20)
		binary.LittleEndian.PutUint32(b[12:], size)
		return b
	}
	for _, tt := range []struct {
		name string
		file []byte
		text string // of the error, without its place
		err  error
	}{
		{"ends in secrets", join(head, packet, good[:20]), "the file ends in the middle of a block of type 0xa before packet 2", io.ErrUnexpectedEOF},
		{"ends before a block's second length", join(head, packet, good[:len(good)-4]), "the file ends in the middle of a block of type 0xa before packet 2", io.ErrUnexpectedEOF},
		{"at the limit", join(head, packet, huge(secretsLimit)), "the file ends in the middle of a block of type 0xa before packet 2", io.ErrUnexpectedEOF},
		{"past the limit", join(head, packet, huge(secretsLimit+4)), "secrets before packet 2 claim 67108868 bytes; the limit is 67108864", nil},
		{"more than the block", join(head, packet, with(12, 21)), "secrets before packet 2 claim 21 bytes in a block of 40", nil},
		{"block too short", join(head, packet, n.block(blockSecrets, make([]byte, 4))), "a block of type 0xa and 16 bytes is too short", nil},
		{"lengths differ", join(head, packet, with(36, 44)), "a block of 40 bytes says at its end that it has 44", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := keyLogs(t, tt.file)
			var fe *FileError
			if !errors.As(err, &fe) || fe.Packet != 2 || tt.err != nil && !errors.Is(err, tt.err) {
				t.Fatalf("got error %v, want a *FileError of packet 2", err)
			}
			if !strings.HasPrefix(err.Error(), tt.text+" (at byte ") {
				t.Errorf("got error\n%s\nwant\n%s", err, tt.text)
			}
			if strings.Contains(err.Error(), "RANDOM") {
				t.Errorf("a secret is in the error %v", err)
			}
		})
	}
}

// A block that claims more secrets than the file has takes memory for what it has.
func TestSecretsClaimed(t *testing.T) {
	n := ngLittle
	b := n.secrets(secretsTLS, make([]byte, 1000))
	binary.LittleEndian.PutUint32(b[4:], secretsLimit+20)
	binary.LittleEndian.PutUint32(b[12:], secretsLimit)
	file := join(n.section(), b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, _, err := keyLogs(t, file); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("it took %d bytes", took)
	}
}

// The header of what an NgWriter writes, with secrets and a packet: section, interface,
// secrets, packet.
func TestNgWriterBytes(t *testing.T) {
	var out bytes.Buffer
	w, err := NewNgWriter(&out)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.KeyLog([]byte("abcde")), w.Write(time.Unix(1, 2), ip4), w.Flush()); err != nil {
		t.Fatal(err)
	}
	want := hexBytes(
		"0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000",
		"01000000 20000000 6500 0000 00000400 0900 0100 09000000 00000000 20000000",
		"0a000000 1c000000 4b534c54 05000000 6162636465 000000 1c000000",
		"06000000 38000000 00000000 00000000 02ca9a3b 18000000 18000000", ip4Hex, "38000000")
	if diff := cmp.Diff(want, out.Bytes()); diff != "" {
		t.Errorf("bytes differ (-want +got):\n%s", diff)
	}
	got, err := readAll(t, out.Bytes())
	if diff := cmp.Diff([]Packet{{Number: 1, Time: time.Unix(1, 2).UTC(), Data: ip4, WireLen: 24}}, got); diff != "" || err != nil {
		t.Errorf("read again: %v\n%s", err, diff)
	}
	if logs, at, err := keyLogs(t, out.Bytes()); err != nil || len(logs) != 1 || logs[0] != "abcde" || at[0] != 1 {
		t.Errorf("read again: %q at %v, %v", logs, at, err)
	}
}

func TestNgWriterBounds(t *testing.T) {
	w, err := NewNgWriter(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(at, make([]byte, recordLimit)), w.KeyLog(make([]byte, secretsLimit))); err != nil {
		t.Error(err)
	}
	if w.Write(at, make([]byte, recordLimit+1)) == nil || w.KeyLog(make([]byte, secretsLimit+1)) == nil {
		t.Error("no error past a limit")
	}
	for _, bad := range []time.Time{time.Unix(-1, 0), time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC), {}} {
		if err := w.Write(bad, ip4); err == nil {
			t.Errorf("no error for %v", bad)
		}
	}
}

func TestNgWriterFails(t *testing.T) {
	w, err := NewNgWriter(&failingWriter{n: 0})
	if err != nil {
		t.Fatal(err) // it is buffered
	}
	if err := w.KeyLog(nil); !errors.Is(err, errFull) {
		t.Errorf("header: got %v", err)
	}
	if w, err = NewNgWriter(&failingWriter{n: 1}); err != nil {
		t.Fatal(err)
	}
	if err := w.KeyLog([]byte(keyLine)); !errors.Is(err, errFull) || strings.Contains(err.Error(), "RANDOM") {
		t.Errorf("secrets: got %v", err)
	}
	if w, err = NewNgWriter(&failingWriter{n: 0}); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Write(at, ip4), w.Flush()); !errors.Is(err, errFull) {
		t.Errorf("packet: got %v", err)
	}
}

// The TLS captures of others have their key logs in front.
func TestSharedSecrets(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(pcaptest.Others(t), "tls", "*.pcapng.gz"))
	if err != nil || len(files) == 0 {
		t.Skip("no captures with secrets among those of other projects")
	}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		r, err := NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := 0
		r.KeyLog(func(log []byte) { lines += bytes.Count(log, []byte("CLIENT_")) })
		if p, err := r.Next(); err != nil || p.Number != 1 || lines < 20 {
			t.Errorf("%s: %d lines of a key log before packet %d, %v", filepath.Base(path), lines, p.Number, err)
		}
	}
}
