package tunnel

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func drawFingerprint(t *rapid.T) (f Fingerprint) {
	copy(f[:], rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "fingerprint"))
	return f
}

func TestFingerprintRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFingerprint(t)
		s := f.String()
		if len(s) != 63 || strings.Count(s, "-") != 7 {
			t.Fatalf("%q", s)
		}
		for _, form := range []string{s, strings.ToLower(s), strings.ReplaceAll(s, "-", ""), " " + strings.ReplaceAll(s, "-", " \t") + "\n",
			strings.NewReplacer("0", "o", "1", "l").Replace(s)} {
			if got, err := ParseFingerprint(form); err != nil || got != f {
				t.Fatalf("%q: %v, %v", form, got, err)
			}
		}
	})
}

func TestFingerprintFindsTypos(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := []byte(strings.ReplaceAll(drawFingerprint(t).String(), "-", ""))
		i := rapid.IntRange(0, len(b)-4).Draw(t, "at")
		before := string(b)
		switch rapid.IntRange(0, 4).Draw(t, "typo") {
		case 0:
			b[i] = alphabet[rapid.IntRange(0, 31).Draw(t, "char")]
		case 1:
			b[i], b[i+1] = b[i+1], b[i]
		case 2:
			for k := range 4 {
				b[i+k] = alphabet[rapid.IntRange(0, 31).Draw(t, "char")]
			}
		case 3:
			b = append(b[:i], b[i+1:]...)
		case 4:
			b[i] = "U$é"[rapid.IntRange(0, 2).Draw(t, "char")]
		}
		if string(b) == before {
			t.Skip("no typo")
		}
		if f, err := ParseFingerprint(string(b)); !errors.Is(err, ErrFingerprint) {
			t.Fatalf("%q for %q: %v, %v", b, before, f, err)
		}
	})
}

func TestFingerprintGarbage(t *testing.T) {
	for _, s := range []string{"", "-", "sha256:00", strings.Repeat("0", 56), strings.Repeat("A", 57), strings.Repeat("Z", 1<<16), "\xff\xfe", "ſ"} {
		if f, err := ParseFingerprint(s); !errors.Is(err, ErrFingerprint) {
			t.Errorf("%.20q: %v, %v", s, f, err)
		}
	}
}

func TestCRC24(t *testing.T) {
	// The check value of CRC-24/OPENPGP.
	if got := crc24([]byte("123456789")); got != 0x21cf02 {
		t.Errorf("%06x", got)
	}
}
