package model

import "bytes"

// A Plan is how a writer turns a base into a body, as edits of tokens. A reader has
// none: how good a plan is changes what a frame costs, and not what it means. Its zero
// value is empty; it keeps its arrays from one Make to the next.
//
//	base   {"t":21.5,"state":"running"}
//	body   {"t":21.4,"state":"idle now"}
//	edits  {"t": is the same, 21.4 a number for 21.5, ,"state":" the same, idle replaces
//	       running, a blank and now are inserted, "} is the same
type Plan struct {
	ops      []edit
	old, new []token // of the base and of the body
	made     bool
	base     int // the lengths of both, by which a plan for others is told
	body     int
}

// An editKind says what becomes of a token of the base; SPEC.md 5.2 has their
// numbers.
type editKind uint8

const (
	editSame    editKind = iota // it is a token of the body, too
	editNumber                  // both tokens are numbers: the difference follows
	editReplace                 // the base's token gives way to literal bytes
	editInsert                  // literal bytes before the base's token
	editDelete                  // the base's token is left out
	editEnd                     // the body ends here, whatever the base has left
)

// An edit is one step from a base to a body.
type edit struct {
	kind editKind
	n    int // literal bytes
}

// Make works out the edits that turn base into body, both borrowed for the call,
// and returns how many literal bytes they have, without those at the end that look
// random. It gives up at more than limit of them: it returns what it had by then, and
// the plan is not made.
func (p *Plan) Make(base, body []byte, limit int) (literals int) {
	p.made, p.base, p.body = false, len(base), len(body)
	p.ops = p.ops[:0]
	if random(base, body) {
		p.ops = append(p.ops, edit{editInsert, len(body)}, edit{editEnd, 0})
		p.made = true
		return 0
	}
	p.old = tokens(p.old[:0], base)
	p.new = tokens(p.new[:0], body)
	s := planning{Plan: p, base: base, body: body, patience: meetPatience + 2*len(p.new)}
	for s.i < len(p.old) && s.j < len(p.new) {
		if s.same(s.i, s.j) {
			s.step(editSame, 0)
			continue
		}
		if s.literals > limit {
			return s.literals
		}
		s.differ()
	}
	if s.j < len(p.new) {
		s.emit(editInsert, len(body)-p.new[s.j].at)
	}
	if s.i < len(p.old) {
		s.emit(editEnd, 0)
	}
	p.made = s.literals <= limit
	return s.literals
}

// Made tells whether the plan has the edits for the base and the body that Make
// was last given.
func (p *Plan) Made() bool { return p.made }

// edits returns the plan for a base and a body. Without one, a frame would be
// written that says something else: no input leads there, only a wrong call.
func (p *Plan) edits(base, body []byte) []edit {
	if p == nil || !p.made || p.base != len(base) || p.body != len(body) {
		panic("model: a body is written without its plan")
	}
	return p.ops
}

// A planning is a Make under way: tokens before i of the base and before j of the
// body are dealt with.
type planning struct {
	*Plan
	base, body []byte
	i, j       int
	literals   int // bytes so far
	lost       int // differences behind which nothing was found to agree
	patience   int // comparisons that meet may still make
}

// emit adds an edit; insertions that follow one another are one.
func (s *planning) emit(kind editKind, n int) {
	s.literals += n
	if last := len(s.ops) - 1; kind == editInsert && last >= 0 && s.ops[last].kind == editInsert {
		s.ops[last].n += n
		return
	}
	s.ops = append(s.ops, edit{kind, n})
}

// step adds an edit that deals with a token of each.
func (s *planning) step(kind editKind, n int) {
	s.emit(kind, n)
	s.i++
	s.j++
}

// same tells whether a token of the base is the same as one of the body.
func (s *planning) same(i, j int) bool {
	return s.old[i].n == s.new[j].n && bytes.Equal(s.old[i].of(s.base), s.new[j].of(s.body))
}

// differ adds the edits for tokens that are not the same, up to where base and
// body agree again.
func (s *planning) differ() {
	old, new := s.old[s.i], s.new[s.j]
	numbers := old.kind == tokenNumber && new.kind == tokenNumber && alike(old.of(s.base), new.of(s.body))
	if numbers && s.goesOn() {
		s.step(editNumber, 0)
		return
	}
	a, b := -1, 0
	if s.lost < lostLimit {
		if random(s.base[old.at:], s.body[new.at:]) {
			rest := len(s.body) - new.at
			s.emit(editInsert, rest)
			s.literals -= rest
			s.j = len(s.new)
			return
		}
		a, b = s.meet()
	}
	if a < 0 {
		s.lost++
		if numbers {
			s.step(editNumber, 0)
		} else {
			s.step(editReplace, new.n)
		}
		return
	}
	for ; a > 0 && b > 0; a, b = a-1, b-1 {
		s.step(editReplace, s.new[s.j].n)
	}
	for ; b > 0; b-- {
		s.emit(editInsert, s.new[s.j].n)
		s.j++
	}
	for ; a > 0; a-- {
		s.emit(editDelete, 0)
		s.i++
	}
}

// goesOn tells whether base and body are alike behind a number: their next
// tokens are the same, or both are numbers, or both end.
func (s *planning) goesOn() bool {
	i, j := s.i+1, s.j+1
	if i == len(s.old) || j == len(s.new) {
		return i == len(s.old) && j == len(s.new)
	}
	return s.same(i, j) || s.old[i].kind == tokenNumber && s.new[j].kind == tokenNumber
}

const (
	// meetPatience is how many comparisons meet makes for a plan, besides two for
	// each token: enough for bodies that are alike, and little for those that are
	// not. With 500 or 8000 the frames of testdata/recorded are the same, with 100 those
	// of RabbitMQ are 10 % longer.
	meetPatience = 2000
	// meetReach is how many tokens on, in either, meet looks. With 12 the frames of
	// RabbitMQ are 12 % longer, since its headers come and go; with 48 they are 2 %
	// shorter, and a difference behind which nothing agrees takes 2,400 comparisons
	// instead of 624.
	meetReach = 24
	// lostLimit is how many differences behind which nothing agrees it takes until
	// the rest is compared token by token. With 2 the frames of testdata/recorded are
	// 0.1 % longer, with 32 as long.
	lostLimit = 8
)

// meet looks for the nearest pair of places, a tokens on in the base and b
// in the body, from which they agree again: in a token of three bytes, or in two
// tokens, or up to the end of both. It returns -1 when there is none near.
func (s *planning) meet() (a, b int) {
	for sum := 1; sum <= 2*meetReach; sum++ {
		for a := max(0, sum-meetReach); a <= min(sum, meetReach); a++ {
			if s.patience--; s.patience < 0 {
				return -1, 0
			}
			i, j := s.i+a, s.j+sum-a
			if i >= len(s.old) || j >= len(s.new) || !s.same(i, j) {
				continue
			}
			oldEnds, newEnds := i+1 == len(s.old), j+1 == len(s.new)
			if s.new[j].n >= 3 || oldEnds && newEnds || !oldEnds && !newEnds && s.same(i+1, j+1) {
				return a, sum - a
			}
		}
	}
	return -1, 0
}

// alike tells whether new can be written as old plus a difference.
func alike(old, new []byte) bool {
	var buf [maxDigits + 2]byte
	o, n := parseNumber(old), parseNumber(new)
	return o.frac == n.frac && bytes.Equal(appendLike(buf[:0], n.value, o), new)
}
