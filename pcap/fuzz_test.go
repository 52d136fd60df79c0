package pcap

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// FuzzReader holds that any input ends, without a panic, in io.EOF or a typed
// error, and that packets are at least an IP header long.
func FuzzReader(f *testing.F) {
	eth := hexBytes(macHex, "88a8 0001 8100 0002 8864 11 00 0007 001a 0021", ip4Hex)
	mpls := hexBytes(macHex, "8847 00010000 000101ff", ip6Hex)
	wifi := hexBytes("00 00 0c00 04800000 02 00 18 00 8803 0000 020000000001 020000000002 020000000003 1000 020000000004 0000 aaaa03 000000 0800", ip4Hex)
	ppi := append(hexBytes("00 00 0800 7f000000"), wifi...)
	sll := hexBytes("0000 0001 0006 0200000000010000 0800", ip4Hex)
	sll2 := hexBytes("0800 0000 00000001 0001 00 06 0200000000010000", ip4Hex)
	pktap := append(hexBytes("24000000 01000000 01000000 656e300000000000 0000000000000000 0000000000000000"), eth...)
	for link, frame := range map[LinkType][]byte{
		LinkPPP: hexBytes("ff03 0021", ip4Hex), LinkCiscoHDLC: hexBytes("0f00 0800", ip4Hex), LinkPPPD: hexBytes("0103 57", ip6Hex),
		LinkPPPoE: eth[22:], LinkFrameRelay: hexBytes("1841 030080 0080c2 0007", macHex, "0800", ip4Hex), LinkPKTAP: pktap,
		LinkNFLOG:    hexBytes("02 00 0001 0800 0100 0800 0300 0700 0a00 616200 00 1c00 0900", ip4Hex),
		LinkEthernet: eth, LinkRadiotap: wifi, LinkWiFi: wifi[12:], LinkPPI: ppi, LinkSLL: sll, LinkSLL2: sll2,
		LinkNull: append([]byte{2, 0, 0, 0}, ip4...), LinkRaw: ip6,
	} {
		f.Add(plain(link).file(frame, mpls, frame[:len(frame)-3]))
		for _, n := range []ng{ngLittle, ngBig} {
			f.Add(join(n.section(), n.iface(link, 100, n.resol(9), n.offset(1)), n.enhanced(0, 1, frame, len(frame)),
				n.simple(frame, 1000), n.old(0, 7, frame), n.section(), n.block(5, frame), n.secrets(secretsTLS, frame)))
		}
	}
	f.Add(classicFile{order: binary.BigEndian, magic: magicModified, minor: 3, link: LinkEthernet, middle: 8}.file(eth, mpls))
	f.Add(gzipped(f, plain(LinkEthernet).file(eth, mpls)))
	f.Add(zstandard(f, plain(LinkEthernet).file(eth, mpls)))

	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := NewReader(bytes.NewReader(in))
		if err != nil {
			var fe *FileError
			var le *LinkTypeError
			if !errors.As(err, &fe) && !errors.As(err, &le) {
				t.Fatalf("NewReader: %v is a %T", err, err)
			}
			return
		}
		logs := 0
		r.KeyLog(func(lines []byte) { logs += len(lines) })
		var clock Clock
		due := clock.At(at)
		for n := 1; ; n++ {
			p, err := r.Next()
			if err != nil {
				var fe *FileError
				if err != io.EOF && !errors.As(err, &fe) {
					t.Fatalf("Next: %v is a %T", err, err)
				}
				break
			}
			if p.Number != n {
				t.Fatalf("record %d has number %d", n, p.Number)
			}
			if p.Skip >= numSkipReasons || (p.Skip == SkipNone) != (len(p.Data) >= 20) {
				t.Fatalf("packet %d: skip %v with %d bytes", n, p.Skip, len(p.Data))
			}
			next := clock.At(p.Time)
			if next < due {
				t.Fatalf("packet %d is due at %v, after one at %v", n, next, due)
			}
			due = next
		}
		if cap(r.src.buf) > 2*snapLimit {
			t.Fatalf("the buffer grew to %d bytes", cap(r.src.buf))
		}
		if plain := bytes.HasPrefix(in, []byte{0x0a, 0x0d}); plain && logs > len(in) {
			t.Fatalf("%d bytes of secrets in %d bytes", logs, len(in))
		}
		if got := r.InputOffset(); got > int64(len(in)) {
			t.Fatalf("consumed %d of %d bytes", got, len(in))
		}
	})
}
