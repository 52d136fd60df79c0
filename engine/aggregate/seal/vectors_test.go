package seal

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// fromHex reads hex digits, as an RFC prints them.
func fromHex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// counted is the plaintext of the application data in RFC 8448: 0 to 49.
const counted = `00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d
	1e 1f 20 21 22 23 24 25 26 27 28 29 2a 2b 2c 2d 2e 2f 30 31`

// vectors13 are records of RFC 8448 section 3, in TLS_AES_128_GCM_SHA256.
var vectors13 = []struct {
	name, secret, key, iv, record, inner string
	number                               uint64
}{{
	name:   "client's Finished",
	secret: "b3 ed db 12 6e 06 7f 35 a7 80 b3 ab f4 5e 2d 8f 3b 1a 95 07 38 f5 2e 96 00 74 6a 0e 27 a5 5a 21",
	key:    "db fa a6 93 d1 76 2c 5b 66 6a f5 d9 50 25 8d 01",
	iv:     "5b d3 c7 1b 83 6e 0b 76 bb 73 26 5f",
	record: `17 03 03 00 35 75 ec 4d c2 38 cc e6 0b 29 80 44 a7 1e 21 9c 56 cc 77 b0 51 7f e9 b9 3c
		7a 4b fc 44 d8 7f 38 f8 03 38 ac 98 fc 46 de b3 84 bd 1c ae ac ab 68 67 d7 26 c4 05 46`,
	inner: `14 00 00 20 a8 ec 43 6d 67 76 34 ae 52 5a c1 fc eb e1 1a 03 9e c1 76 94 fa c6 e9 85
		27 b6 42 f2 ed d5 ce 61 16`,
}, {
	name:   "client's application data",
	secret: "9e 40 64 6c e7 9a 7f 9d c0 5a f8 88 9b ce 65 52 87 5a fa 0b 06 df 00 87 f7 92 eb b7 c1 75 04 a5",
	key:    "17 42 2d da 59 6e d5 d9 ac d8 90 e3 c6 3f 50 51",
	iv:     "5b 78 92 3d ee 08 57 90 33 e5 23 d9",
	record: `17 03 03 00 43 a2 3f 70 54 b6 2c 94 d0 af fa fe 82 28 ba 55 cb ef ac ea 42 f9 14 aa 66
		bc ab 3f 2b 98 19 a8 a5 b4 6b 39 5b d5 4a 9a 20 44 1e 2b 62 97 4e 1f 5a 62 92 a2 97 70
		14 bd 1e 3d ea e6 3a ee bb 21 69 49 15 e4`,
	inner: counted + "17",
}, {
	name:   "server's application data, behind its NewSessionTicket",
	secret: "a1 1a f9 f0 55 31 f8 56 ad 47 11 6b 45 a9 50 32 82 04 b4 f4 4b fb 6b 3a 4b 4f 1f 3f cb 63 16 43",
	key:    "9f 02 28 3b 6c 9c 07 ef c2 6b b9 f2 ac 92 e3 56",
	iv:     "cf 78 2b 88 dd 83 54 9a ad f1 e9 84",
	record: `17 03 03 00 43 2e 93 7e 11 ef 4a c7 40 e5 38 ad 36 00 5f c4 a4 69 32 fc 32 25 d0 5f 82
		aa 1b 36 e3 0e fa f9 7d 90 e6 df fc 60 2d cb 50 1a 59 a8 fc c4 9c 4b f2 e5 f0 a2 1c 00
		47 c2 ab f3 32 54 0d d0 32 e1 67 c2 95 5d`,
	inner:  counted + "17",
	number: 1,
}}

// TestRFC8448 holds the key schedule from traffic secrets on and the record layer.
func TestRFC8448(t *testing.T) {
	for _, v := range vectors13 {
		t.Run(v.name, func(t *testing.T) {
			secret, record, inner := fromHex(t, v.secret), fromHex(t, v.record), fromHex(t, v.inner)
			key, iv, err := AES128GCM13.find().traffic(secret)
			if err != nil || !bytes.Equal(key, fromHex(t, v.key)) || !bytes.Equal(iv, fromHex(t, v.iv)) {
				t.Errorf("key %x, iv %x, %v", key, iv, err)
			}
			k, err := NewKeys(AES128GCM13, secret)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := k.Open(nil, record, v.number); !ok || !bytes.Equal(got, inner) {
				t.Errorf("opened to %x, %v", got, ok)
			}
			if got := k.Seal(nil, [3]byte(record), nil, inner, v.number); !bytes.Equal(got, record) {
				t.Errorf("sealed to %x", got)
			}
			if number, ok := Find(k, record, 0, 10); !ok || number != v.number {
				t.Errorf("found number %d, %v", number, ok)
			}
		})
	}
}

// TestPRF is the vector for TLS 1.2's PRF with SHA-256 that was sent to the IETF's TLS list,
// www.ietf.org/mail-archive/web/tls/current/msg03416.html.
func TestPRF(t *testing.T) {
	secret := fromHex(t, "9b be 43 6b a9 40 f0 17 b1 76 52 84 9a 71 db 35")
	seed := append([]byte("test label"), fromHex(t, "a0 ba 9f 93 6c da 31 18 27 a6 f7 96 ff d5 19 8c")...)
	want := fromHex(t, `e3 f2 29 ba 72 7b e1 7b 8d 12 26 20 55 7c d4 53 c2 aa b2 1d 07 c3 d4 95 32 9b 52 d4 e6 1e db 5a
		6b 30 17 91 e9 0d 35 c9 c9 a4 6b 4e 14 ba f9 af 0f a0 22 f7 07 7d ef 17 ab fd 37 97 c0 56 4b ab
		4f bc 91 66 6e 9d ef 9b 97 fc e3 4f 79 67 89 ba a4 80 82 d1 22 ee 42 c5 a7 2e 5a 51 10 ff f7 01
		87 34 7b 66`)
	if got := prf(ECDSAAES128GCM.find().hash, secret, seed, len(want)); !bytes.Equal(got, want) {
		t.Errorf("%x", got)
	}
}
