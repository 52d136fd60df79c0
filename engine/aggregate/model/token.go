package model

type tokenKind uint8

const (
	tokenOther  tokenKind = iota // one byte
	tokenWord                    // letters, underscores, and all of UTF-8 beyond ASCII
	tokenNumber                  // digits, and a decimal fraction
)

const (
	// maxWord is the length of a token that is a word; longer ones are several tokens,
	// so that a change in base64 does not cost the whole run. With 16 or 64 the frames
	// of testdata/recorded are as long, to 0.1 %.
	maxWord   = 32
	maxDigits = 18 // of a token that is a number: as many as fit an int64, whatever they are
)

// kindOf tells by a token's first byte what it is.
var kindOf = func() (t [256]tokenKind) {
	for b := range t {
		switch {
		case b >= '0' && b <= '9':
			t[b] = tokenNumber
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b == '_', b >= 0x80:
			t[b] = tokenWord
		}
	}
	return t
}()

// nextToken returns the kind and length of the token at b[i:], which is not
// empty. What follows a point is a whole number: in a.10.9 the next is a.10.10.
func nextToken(b []byte, i int) (tokenKind, int) {
	dotted := i > 0 && b[i-1] == '.'
	b = b[i:]
	kind := kindOf[b[0]]
	n := 1
	switch kind {
	case tokenWord:
		for n < len(b) && n < maxWord && kindOf[b[n]] == tokenWord {
			n++
		}
	case tokenNumber:
		for n < len(b) && n < maxDigits && kindOf[b[n]] == tokenNumber {
			n++
		}
		// a decimal fraction belongs to the number
		if !dotted && n+1 < len(b) && n < maxDigits && b[n] == '.' && kindOf[b[n+1]] == tokenNumber {
			digits := n
			m := n + 1
			for m < len(b) && digits < maxDigits && kindOf[b[m]] == tokenNumber {
				m++
				digits++
			}
			n = m
		}
	}
	return kind, n
}

// A token is what bodies are compared by: {"t":21.5} has the seven tokens
// { " t " : 21.5 } (SPEC.md 5.1).
type token struct {
	kind tokenKind
	at   int // offset of its first byte
	n    int // length in bytes
}

// of returns the token's bytes of those that it was found in.
func (t token) of(b []byte) []byte { return b[t.at : t.at+t.n] }

// tokens appends those of b to dst.
func tokens(dst []token, b []byte) []token {
	for i := 0; i < len(b); {
		kind, n := nextToken(b, i)
		dst = append(dst, token{kind, i, n})
		i += n
	}
	return dst
}

// A number is a number token taken apart: 021.50 has the value 2150, 2 digits of 5
// after its point, and is padded.
type number struct {
	value  int64 // without the point
	frac   int   // digits after the point
	digits int   // digits in all
	padded bool  // it has zeros in front, and so a width that it keeps
}

// parseNumber takes a token apart that is a number.
func parseNumber(b []byte) (n number) {
	for i, ch := range b {
		if ch == '.' {
			n.frac = len(b) - i - 1
			continue
		}
		n.value = n.value*10 + int64(ch-'0')
		n.digits++
	}
	n.padded = b[0] == '0' && n.digits > n.frac+1
	return n
}

// appendLike appends value in the form of like: as many digits after the point,
// and as many in all where like has leading zeros. 7 like 021.50 is 000.07, and like
// 21.50 it is 0.07.
func appendLike(dst []byte, value int64, like number) []byte {
	var buf [maxDigits + 2]byte
	i := len(buf)
	width := like.frac + 1
	if like.padded {
		width = like.digits
	}
	for n := 0; value != 0 || n < width; n++ {
		if n == like.frac && n != 0 {
			i--
			buf[i] = '.'
		}
		i--
		buf[i] = byte('0' + value%10)
		value /= 10
	}
	return append(dst, buf[i:]...)
}
