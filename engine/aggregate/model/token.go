package model

// A token is what bodies are compared by: a number, a word, or one other byte
// (SPEC.md 5.1).
type tokenKind uint8

const (
	tokenOther tokenKind = iota
	tokenWord
	tokenNumber
)

const (
	maxWord   = 32 // longer words are several tokens
	maxDigits = 18 // what fits an int64
)

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

type token struct {
	kind tokenKind
	at   int
	n    int
}

// of returns the token's bytes of those that it was found in.
func (t token) of(b []byte) []byte { return b[t.at : t.at+t.n] }

func tokens(dst []token, b []byte) []token {
	for i := 0; i < len(b); {
		kind, n := nextToken(b, i)
		dst = append(dst, token{kind, i, n})
		i += n
	}
	return dst
}

// A number is a number token taken apart.
type number struct {
	value  int64
	frac   int // digits after the point
	digits int // digits in all
	padded bool
}

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
// and as many in all where like has leading zeros.
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
