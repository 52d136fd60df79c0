package model

import "bytes"

// A Plan is how a writer turns a template into a body. A reader has none: how good a
// plan is changes what a frame costs, and not what it means. Its zero value is empty;
// it keeps its arrays from one Make to the next.
type Plan struct {
	ops      []edit
	old, new []token
	patience int // comparisons that meet may still make
	made     bool
	template int // their lengths, with which a plan for others is told
	body     int
}

type editKind uint8

const (
	editSame    editKind = iota
	editNumber           // both tokens are numbers: the difference follows
	editReplace          // the template's token gives way to literal bytes
	editInsert           // literal bytes before the template's token
	editDelete           // the template's token is left out
	editEnd              // the body ends here, whatever the template has left
)

type edit struct {
	kind editKind
	n    int // literal bytes
}

// Make works out the edits that turn template into body, both borrowed for the call,
// and returns how many literal bytes they have, without those at the end that look
// random. It gives up at more than limit of them: it returns what it had by then, and
// the plan is not made.
func (p *Plan) Make(template, body []byte, limit int) (literals int) {
	p.made = false
	p.template, p.body = len(template), len(body)
	p.ops = p.ops[:0]
	if random(template, body) {
		p.ops = append(p.ops, edit{editInsert, len(body)}, edit{editEnd, 0})
		p.made = true
		return 0
	}
	p.old = tokens(p.old[:0], template)
	p.new = tokens(p.new[:0], body)
	old, new := p.old, p.new
	text := func(t token) []byte { return body[t.at : t.at+t.n] }
	same := func(i, j int) bool {
		return old[i].n == new[j].n && bytes.Equal(template[old[i].at:old[i].at+old[i].n], text(new[j]))
	}
	emit := func(kind editKind, n int) {
		literals += n
		if kind == editInsert && len(p.ops) > 0 && p.ops[len(p.ops)-1].kind == editInsert {
			p.ops[len(p.ops)-1].n += n
			return
		}
		p.ops = append(p.ops, edit{kind, n})
	}
	p.patience = meetPatience + 2*len(new)
	i, j, lost := 0, 0, 0
	for i < len(old) && j < len(new) {
		if same(i, j) {
			emit(editSame, 0)
			i++
			j++
			continue
		}
		if literals > limit {
			return literals
		}
		numbers := old[i].kind == tokenNumber && new[j].kind == tokenNumber &&
			alike(template[old[i].at:old[i].at+old[i].n], text(new[j]))
		if numbers && p.goesOn(i, j, same) {
			emit(editNumber, 0)
			i++
			j++
			continue
		}
		if lost < 8 && random(template[old[i].at:], body[new[j].at:]) {
			emit(editInsert, len(body)-new[j].at)
			literals -= len(body) - new[j].at
			j, i = len(new), 0
			break
		}
		a, b := 0, 0
		if lost < 8 {
			a, b = p.meet(i, j, same)
		}
		if a < 0 || lost >= 8 {
			lost++
			if numbers {
				emit(editNumber, 0)
			} else {
				emit(editReplace, new[j].n)
			}
			i++
			j++
			continue
		}
		for ; a > 0 && b > 0; a, b = a-1, b-1 {
			emit(editReplace, new[j].n)
			i++
			j++
		}
		for ; b > 0; b-- {
			emit(editInsert, new[j].n)
			j++
		}
		for ; a > 0; a-- {
			emit(editDelete, 0)
			i++
		}
	}
	if j < len(new) {
		emit(editInsert, len(body)-new[j].at)
	}
	if i < len(old) {
		emit(editEnd, 0)
	}
	p.made = literals <= limit
	return literals
}

// Made tells whether the plan has the edits for the template and the body that Make
// was last given.
func (p *Plan) Made() bool { return p.made }

// edits returns the plan for a template and a body. Without one, a frame would be
// written that says something else: no input leads there, only a wrong call.
func (p *Plan) edits(template, body []byte) []edit {
	if p == nil || !p.made || p.template != len(template) || p.body != len(body) {
		panic("model: a body is written without its plan")
	}
	return p.ops
}

// goesOn tells whether template and body are alike behind a number: their next
// tokens are the same, or both are numbers, or both end.
func (p *Plan) goesOn(i, j int, same func(i, j int) bool) bool {
	switch last := i+1 == len(p.old); {
	case last || j+1 == len(p.new):
		return last && j+1 == len(p.new)
	case same(i+1, j+1):
		return true
	default:
		return p.old[i+1].kind == tokenNumber && p.new[j+1].kind == tokenNumber
	}
}

// meetPatience is how many comparisons meet makes for a plan, besides two for
// each token: enough for bodies that are alike, and little for those that are
// not.
const meetPatience = 2000

// meet looks for the nearest pair of places, a tokens on in the template and b
// in the body, from which they agree again. It returns -1 when there is none
// near.
func (p *Plan) meet(i, j int, same func(i, j int) bool) (a, b int) {
	const reach = 24
	for sum := 1; sum <= 2*reach; sum++ {
		for a := max(0, sum-reach); a <= min(sum, reach); a++ {
			b := sum - a
			if p.patience--; p.patience < 0 {
				return -1, 0
			}
			if i+a >= len(p.old) || j+b >= len(p.new) || !same(i+a, j+b) {
				continue
			}
			if p.new[j+b].n >= 3 {
				return a, b
			}
			if i+a+1 >= len(p.old) || j+b+1 >= len(p.new) {
				if i+a+1 == len(p.old) && j+b+1 == len(p.new) {
					return a, b
				}
				continue
			}
			if same(i+a+1, j+b+1) {
				return a, b
			}
		}
	}
	return -1, 0
}
