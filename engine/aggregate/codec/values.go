package codec

import (
	"bytes"

	"sheaf/engine/aggregate/model"
	"sheaf/parsers"
)

// codeValues codes what fills the holes: each flow has counters, and texts that
// are the same again.
func (x *codec) codeValues(g *Group) error {
	if g.holes == 0 {
		return nil
	}
	n := len(g.Members) * g.holes
	if n > int(x.limits.Bytes) {
		return invalid("too many holes")
	}
	if x.coder.Reading() {
		if cap(g.Values) < n {
			g.Values = make([]uint64, n, 2*n)
		}
		g.Values = g.Values[:n]
	}
	k := 0
	for s := range g.Spans {
		for _, h := range g.Spans[s].Holes {
			if h.kind == parsers.HoleText {
				if err := x.codeTexts(g, h, k); err != nil {
					return err
				}
			} else {
				x.codeNumbers(g, h, k)
			}
			k++
		}
	}
	return nil
}

// codeNumbers codes the numbers that fill the k-th hole of each member: the
// flow's counter, moved on by the hole's step. MQTT packet identifiers 7 and 8
// predict 9 where the step is 1.
func (x *codec) codeNumbers(g *Group, h Hole, k int) {
	predict := func(f *context) uint64 { return h.wrap(f.counters[h.counter] + uint64(h.step)) }
	res := x.column(len(g.Members))
	for i := range x.written(g) {
		res[i] = int64(g.Values[i*g.holes+k] - predict(g.Members[i].context))
		if h.kind == parsers.HoleMask {
			res[i] = int64(h.wrap(uint64(res[i]))) // a new key is random: no sign to be paid for
		}
	}
	x.models.values[h.counter].Code(&x.coder, res)
	for i := range g.Members {
		f := g.Members[i].context
		v := h.wrap(predict(f) + uint64(res[i]))
		g.Values[i*g.holes+k] = v
		f.counters[h.counter] = v
	}
}

// codeTexts codes the texts that fill the k-th hole of each member: the flow's
// last, or else as an edit of the newest of any flow.
func (x *codec) codeTexts(g *Group, h Hole, k int) error {
	res := x.column(len(g.Members))
	for i := range x.written(g) {
		f := g.Members[i].context
		if f.texts == nil || !bytes.Equal(f.texts[h.counter], text(g.Values[i*g.holes+k], x.texts)) {
			res[i] = 1
		}
	}
	x.models.values[h.counter].Code(&x.coder, res)
	for i := range g.Members {
		f := g.Members[i].context
		if f.texts == nil {
			f.texts = new([parsers.NumCounters][]byte)
		}
		v := &g.Values[i*g.holes+k]
		if res[i] != 0 {
			if err := x.codeText(&f.texts[h.counter], *v, h.counter); err != nil {
				return err
			}
		}
		if x.coder.Reading() {
			own := f.texts[h.counter]
			if len(own) == 0 || len(x.texts) > int(x.limits.Bytes) {
				return invalid("empty text, or too many")
			}
			*v = x.addText(own)
		}
	}
	return nil
}

// codeText codes a text that is not the flow's last one, which it becomes. v stands
// for the text to be written.
func (x *codec) codeText(own *[]byte, v uint64, counter uint8) error {
	newest := &x.newestText[counter]
	e := model.Edit{Base: *newest, Limit: parsers.MaxHoleText}
	if !x.coder.Reading() {
		e.Body = text(v, x.texts)
		e.Plan = &x.plan
		x.plan.Make(e.Base, e.Body, len(e.Body))
	}
	b, err := x.models.body.Code(&x.coder, x.scratch[:0], &e)
	if err != nil {
		return invalid(err.Error())
	}
	t := e.Body
	if x.coder.Reading() {
		x.scratch, t = b, b
	}
	*own = append((*own)[:0], t...)
	*newest = append((*newest)[:0], t...)
	return nil
}

// addText keeps a text, of the frame that is written or of the group that is read,
// and returns what stands for it.
func (x *codec) addText(b []byte) uint64 {
	v := textValue(len(x.texts), len(b))
	x.texts = append(x.texts, b...)
	return v
}
