package tls

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sheaf/parsers"
	"sheaf/parsers/parsertest"
)

func TestScanRecords(t *testing.T) {
	for _, tt := range records {
		s := NewScanner(testID)
		spans := scanAll(t, s, cat(tt.bytes, tt.bytes))
		if s.state != boundary || len(spans) != 2 {
			t.Errorf("%s: spans:\n%s", tt.name, showSpans(spans))
			continue
		}
		sp := spans[0]
		class := parsers.ClassUrgent
		if tt.want == ApplicationData {
			class = parsers.ClassData
		}
		if Name(sp.Name) != tt.want || sp.At != 0 || sp.Len != len(tt.bytes) || sp.Body != headSize || sp.Class != class || sp.Encrypted != (tt.want == ApplicationData) {
			t.Errorf("%s: span %+v", tt.name, sp)
		}
	}
}

// TestEncrypted holds what is taken for ciphertext in a handshake of TLS 1.2.
func TestEncrypted(t *testing.T) {
	var got strings.Builder
	for _, sp := range scanAll(t, NewScanner(testID), clientHello, cat(serverHello, change, finished), data(90), encryptedAlert, closeNotify) {
		got.WriteString(Name(sp.Name).String())
		if sp.Encrypted {
			got.WriteString(" encrypted")
		}
		got.WriteByte('\n')
	}
	want := `handshake
handshake
change_cipher_spec
handshake encrypted
application_data encrypted
alert encrypted
alert encrypted
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Error(diff)
	}
}

func TestScanSplits(t *testing.T) {
	m := data(100)
	suite.Scans(t, newScanner, parsertest.Streams[[]byte]{
		{"in the fragment", parsertest.Cut(m, 14), `
application_data 0+14 body 5
application_data 14+91 body 0
`},
		{"behind the head", parsertest.Cut(m, 5), `
application_data 0+5 body 5
application_data 5+100 body 0
`},
		{"in the head", parsertest.Cut(cat(m, m), 1, 3, 106), `
application_data 0+1 body 1
application_data 1+2 body 2
application_data 3+102 body 2
application_data 0+1 body 1
application_data 1+104 body 4
`},
		{"an empty record", parsertest.Cut(cat(record(ApplicationData, ""), m), 4), `
application_data 0+4 body 4
application_data 4+1 body 1
application_data 0+105 body 5
`},
	})
}

func TestKeys(t *testing.T) {
	key := func(id parsers.ProtocolID, b []byte) uint64 { return NewScanner(id).Scan(nil, b)[0].Key }
	a := key(testID, data(90))
	if a != key(testID, data(91)) || a != key(testID, version(1, data(80))) {
		t.Error("length or version is in the key")
	}
	if a == key(testID, clientHello) || a == key(testID+1, data(90)) {
		t.Error("content type or protocol is not in the key")
	}
}

func TestResync(t *testing.T) {
	long := data(16000)
	suite.Resync(t, newScanner, long[:300], parsertest.AfterLoss[[]byte]{
		{"record at the start", data(90), "application_data 0+95 body 5\n"},
		{"handshake at the start", clientHello, "handshake 0+249 body 5\n"},
		{"cut record at the start", long[:500], "application_data 0+500 body 5\n"},
		{"record inside, up to the end", cat(long[5000:5300], data(90)), "opaque 300\napplication_data 0+95 body 5\n"},
		{"cut record inside", cat(long[5000:5300], long[:700]), "opaque 300\napplication_data 0+700 body 5\n"},
		{"alert at the end", cat(long[5000:5300], closeNotify), "opaque 300\nalert 0+7 body 5\n"},
		{"cut handshake inside is no evidence", cat(long[5000:5300], clientHello[:200]), "opaque 500\n"},
		{"nothing", long[5000:5300], "opaque 300\n"},
		{"zeroes", make([]byte, 100), "opaque 100\n"},
	})
}

// TestGarbage holds that what is no record is opaque and the next one is found.
func TestGarbage(t *testing.T) {
	good, bad := data(90), []byte("garbage")
	for name, pieces := range map[string][][]byte{
		"own segment":       {good, bad, good},
		"same segment":      {good, cat(bad, good)},
		"after a cut head":  {good[:3], bad, good, good},
		"after a cut head2": {good[:4], cat([]byte{0xff}, bad), good},
		"inside a record":   {cat(good[:17], bad), good, good},
	} {
		spans := scanAll(t, NewScanner(testID), pieces...)
		if last := spans[len(spans)-1]; Name(last.Name) != ApplicationData || last.Len != len(good) && name != "inside a record" {
			t.Errorf("%s:\n%s", name, showSpans(spans))
		}
	}
}

func TestRescan(t *testing.T) {
	s := NewScanner(testID)
	suite.Rescan(t, s, func() any { return *s }, [][]byte{clientHello, change, data(90), data(70)[:3]},
		data(70)[:2], []byte{0}, data(3000)[:1448])
	suite.Shows(t, s, "application_data 3+72 body 2\n", data(70)[3:])
}
