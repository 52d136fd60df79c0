package model

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// describe returns what a plan does: tokens that stay as they are, and in brackets
// [#] for a number, [old>new] for a replacement, [+new] for an insertion, [-old] for a
// deletion and [end].
func describe(p *Plan, base, body string) string {
	var b strings.Builder
	old := tokens(nil, []byte(base))
	done := 0 // of the body
	take := func(n int) string { done += n; return body[done-n : done] }
	for _, e := range p.ops {
		text := ""
		if len(old) > 0 {
			text = base[old[0].at : old[0].at+old[0].n]
		}
		switch e.kind {
		case editSame:
			b.WriteString(take(len(text)))
		case editNumber:
			_, n := nextToken([]byte(body), done)
			take(n)
			b.WriteString("[#]")
		case editReplace:
			fmt.Fprintf(&b, "[%s>%s]", text, take(e.n))
		case editInsert:
			fmt.Fprintf(&b, "[+%s]", take(e.n))
			continue
		case editDelete:
			fmt.Fprintf(&b, "[-%s]", text)
		case editEnd:
			b.WriteString("[end]")
			return b.String()
		}
		old = old[1:]
	}
	return b.String()
}

// The rules by which a plan is made, one by one.
func TestPlan(t *testing.T) {
	// 24 random bytes, none of them ASCII, so that they are one word
	const noise = "\x92\xe4\xb7\xcb\x85\xfa\xa1\xdd\xf6\x8f\x98\xc3\xae\xd0\xb9\xe2\x81\xcc\x97\xa5\xff\x8a\xd3\xbe"
	for _, tt := range []struct {
		rule       string
		base, body string
		want       string
		literals   int
	}{
		{"nothing of nothing", "", "", "", 0},
		{"without a base all is inserted", "", "abc", "[+abc]", 3},
		{"what is the same stays", "abc 1", "abc 1", "abc 1", 0},
		{"a base that goes on ends", "abc,", "abc", "abc[end]", 0},
		{"a body that is empty ends at once", "abc", "", "[end]", 0},
		{"a body that goes on is inserted", "abc", "abc,x", "abc[+,x]", 2},
		{"a number behind which all ends", "n=5", "n=6", "n=[#]", 0},
		{"a number behind which the next is the same", "5,", "6,", "[#],", 0},
		{"a number behind which both have a number", "1.5.7", "1.6.8", "[#].[#]", 0},
		{"a number behind which one ends", "n=5", "n=6,", "n=[#][+,]", 1},
		{"a number of another form is text", "n=5", "n=0.5", "n=[5>0.5]", 3},
		{"a word in place of a number", "n=5", "n=abc", "n=[5>abc]", 3},
		{"two tokens that are the same", `{"a":1}`, `{"a":1,"b":2}`, `{"a":1[+,"b":2]}`, 6},
		{"fields in between", "a,bb,ccc", "a,x,bb,ccc", "a,[+x,]bb,ccc", 2},
		{"fields left out", "a,x,bb,ccc", "a,bb,ccc", "a,[-x][-,]bb,ccc", 0},
		{"one token of three bytes is enough to go on", "a;ccc-", "x.,ccc+", "[a>x][;>.][+,]ccc[->+]", 4},
		{"one of two bytes is not", "a;cc-", "x.,cc+", "[a>x][;>.][cc>,][->cc][++]", 6},
		{"the end of both is", "a;c", "x.yc", "[a>x][;>.][c>yc]", 4},
		{"the nearest counts", "one=abc;two=abc", "abc", "[-one][-=]abc[end]", 0},
		{"what was replaced is replaced, the rest inserted", "a.ccc", "x-y.ccc", "[a>x][+-y].ccc", 3},
		{"the rest deleted", "a-b.ccc", "x.ccc", "[a>x][--][-b].ccc", 1},
		{"random bytes instead of a body", "abc", noise, "[+" + noise + "][end]", 0},
		{"random bytes behind what is alike", "a=bcd", "a=" + noise, "a=[+" + noise + "][end]", 0},
		{"a random field between what is alike", "a=bcd,end", "a=" + noise + ",end", "a=[bcd>" + noise + "],end", len(noise)},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			p := new(Plan)
			literals := p.Make([]byte(tt.base), []byte(tt.body), len(tt.body))
			if got := describe(p, tt.base, tt.body); got != tt.want || literals != tt.literals || !p.Made() {
				t.Errorf("%q to %q: %s with %d literals, want %s with %d", tt.base, tt.body, got, literals, tt.want, tt.literals)
			}
		})
	}
}

// How far a plan looks for where base and body agree again, and how long.
func TestPlanBounds(t *testing.T) {
	commas, colons := strings.Repeat(",", 100), strings.Repeat(";", 100)
	long := strings.Repeat(".", 2000)
	for _, tt := range []struct {
		rule       string
		base, body string
		literals   int
	}{
		{"reach, in the base", commas[:meetReach] + "abc", "abc", 0},
		{"past reach, in the base", commas[:meetReach+1] + "abc", "abc", 3},
		{"reach, in the body", "abc", commas[:meetReach] + "abc", meetReach},
		{"past reach, in the body", "abc", commas[:meetReach+1] + "abc", meetReach + 1 + 3},
		// abc is in reach after 2 differences, or after 3
		{"patience", commas[:25] + "abc", colons[:26] + "abc", 26},
		{"no more patience", commas[:26] + "abc", colons[:27] + "abc", 27 + 3},
		// in reach after 7, or after 8; patience grows with the body, and there is enough
		{"not lost yet", commas[:30] + "abc" + long, colons[:31] + "abc" + long, 31},
		{"lost", commas[:31] + "abc" + long, colons[:32] + "abc" + long, 32 + 3 + 1},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			p := new(Plan)
			if got := p.Make([]byte(tt.base), []byte(tt.body), len(tt.body)); got != tt.literals {
				t.Errorf("%d literals, want %d", got, tt.literals)
			}
		})
	}
}

// A plan is given up at the first literal past its limit.
func TestPlanGivenUp(t *testing.T) {
	const base, body = "a=12345678,b", "a=abcdefgh,c"
	for limit := range 12 {
		p := new(Plan)
		literals := p.Make([]byte(base), []byte(body), limit)
		want := 9
		if limit < 8 {
			want = 8 // the second difference is not looked at
		}
		if p.Made() != (limit >= 9) || literals != want {
			t.Errorf("limit %d: made %v, %d literals", limit, p.Made(), literals)
		}
	}
}

// The plan in Plan's comment.
func TestPlanExample(t *testing.T) {
	const base, body = `{"t":21.5,"state":"running"}`, `{"t":21.4,"state":"idle now"}`
	p := new(Plan)
	p.Make([]byte(base), []byte(body), len(body))
	if got, want := describe(p, base, body), `{"t":[#],"state":"[running>idle][+ now]"}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A plan that was used or given up before is as good as a new one.
func TestPlanAgain(t *testing.T) {
	old, new1, new2 := []byte("alpha,beta 5"), []byte("alpha,gamma 6"), []byte("something else altogether, and longer")
	want := roundTrip(t, new(Body), new(Body), planned(old, new1, 0))
	for _, tt := range []struct {
		name  string
		first []byte
		limit int
		made  bool
	}{
		{"the same", new1, len(new1), true},
		{"the same, given up", new1, 2, false},
		{"another", new2, len(new2), true},
		{"another, given up", new2, 5, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := new(Plan)
			if p.Make(old, tt.first, tt.limit); p.Made() != tt.made {
				t.Fatalf("made: %v", p.Made())
			}
			p.Make(old, new1, len(new1))
			var c Coder
			c.Write(nil)
			if _, err := new(Body).Code(&c, nil, &Edit{Base: old, Body: new1, Plan: p}); err != nil {
				t.Fatal(err)
			}
			c.Bits(0x2a, 6)
			if got := c.Finish(); !bytes.Equal(got, want) {
				t.Errorf("control field %x, with a new plan %x", got, want)
			}
		})
	}
}

// A body is not written without its plan: it would come out as another.
func TestPlanMissing(t *testing.T) {
	old, body := []byte("alpha,beta 5"), []byte("alpha,gamma 6")
	made := planned(old, body, 0).Plan
	given := new(Plan)
	given.Make(old, body, 2)
	for name, e := range map[string]*Edit{
		"none":         {Base: old, Body: body},
		"empty":        {Base: old, Body: body, Plan: new(Plan)},
		"given up":     {Base: old, Body: body, Plan: given},
		"another body": {Base: old, Body: old[1:], Plan: made},
		"another base": {Base: old[1:], Body: body, Plan: made},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("coded")
				}
			}()
			var c Coder
			c.Write(nil)
			_, _ = new(Body).Code(&c, nil, e)
		})
	}
}
