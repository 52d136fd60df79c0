package codec

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sheaf/engine/aggregate/codec/codectest"
	"sheaf/engine/wire"
)

var update = flag.Bool("update", false, "write the worked example into the documents anew")

// worked are the documents that have the example, between two lines of comment.
var worked = []string{"../../../docs/architecture.md", "../../wire/SPEC.md"}

const (
	workedBegin = "<!-- The worked example: go test ./engine/aggregate/codec -run TestWorkedExample -update -->\n"
	workedEnd   = "<!-- end of the example -->\n"
)

// A workedStep is one thing that a frame's control field says, and what it cost.
type workedStep struct {
	name, value string
	bits        float64
}

// A tracer encodes a frame as Encoder.Encode does, and notes each step.
type tracer struct {
	*Encoder
	at    float64
	steps []workedStep
}

func (t *tracer) step(name, format string, args ...any) {
	now := t.coder.Cost()
	t.steps = append(t.steps, workedStep{name, fmt.Sprintf(format, args...), now - t.at})
	t.at = now
}

// trace is Encoder.Encode for a frame of groups with members.
func (t *tracer) trace(f Frame) Result {
	t.coder.Write(nil)
	t.coder.Literals, t.items, t.reuse, t.effort = nil, t.items[:0], f.Reuse, 0
	h := t.chooseHead(&f)
	clock := t.clock
	t.codeHead(&h)
	t.step("head", "frames of the peer rebuilt: %d; clock: %+d", h.acked, int32(h.clock-clock))
	must(t.codePairs(&h))
	t.step("pairs", "%d", len(h.pairs))
	t.now, t.pairs = f.Now, t.pairs[:0]
	for i := range f.Groups {
		t.codeMore(true)
		t.step("more", "a group")
		t.group(&f.Groups[i])
	}
	t.codeMore(false)
	t.step("more", "no other")
	t.past.frames++
	t.past.add(t.items)
	t.texts, t.sacks = t.texts[:0], t.sacks[:0]
	return Result{Control: t.coder.Finish(), Literals: t.coder.Literals}
}

// group is Encoder.encodeGroup for a group of several members with payload.
func (t *tracer) group(g *Group) {
	t.chooseContexts(g)
	must(t.codeShape(g))
	t.step("shape", "TCP over IPv4, with payload, flags %02x, several members", g.Flags)
	p, err := t.codeSpanCount(g)
	must(err)
	t.step("spans", "%d", p.number)
	for i := range g.Spans {
		s := &g.Spans[i]
		t.chooseTemplate(g, s)
		must(t.codeTemplate(g, &p, i))
		t.enterTemplate(s, &p)
		t.noteTemplate(s)
		what := "new, number"
		if s.known {
			what = "number"
		}
		t.step("template", "%s %d", what, s.template.place())
		t.chooseBody(g, s)
		must(t.codeBody(s, &p))
		t.noteBody(g, s)
		t.learnBody(s)
		switch {
		case s.depth >= 0:
			t.step("body", "a copy of the newest but %d", s.depth)
		default:
			t.step("body", "an edit to %q", s.Body)
		}
		must(t.codeHoles(s))
		t.learnHoles(s)
		t.step("holes", "%s", holesOf(s.Holes))
	}
	t.learnSpans(g)
	g.CountHoles()
	t.chooseMembers(g)
	t.chooseNew(g)
	must(t.codeMembers(g))
	from := [...]string{"one by one", "the template's set", "those expected"}[g.source]
	var who []string
	for i := range g.Members {
		name := fmt.Sprint(g.Members[i].cid.place())
		if g.Members[i].fresh {
			name += " new"
		}
		who = append(who, name)
	}
	t.step("members", "%s: CID %s", from, strings.Join(who, ", "))
	t.chooseSums(g)
	t.chooseShuffled(g)
	for _, c := range columns {
		if c.has(g.Kind) {
			before := t.coder.Cost()
			must(c.code(&t.codec, g))
			if t.coder.Cost() != before {
				t.step(c.name, "%s", columnOf(c.name, g))
			}
		}
	}
	t.learn(g)
}

func holesOf(holes []Hole) string {
	var all []string
	for _, h := range holes {
		all = append(all, fmt.Sprintf("%d bytes at %d, counter %d, step %d", h.width, h.at, h.counter, h.step))
	}
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, "; ")
}

// columnOf returns what a column says of the members.
func columnOf(name string, g *Group) string {
	var all []string
	for i := range g.Members {
		mb := &g.Members[i]
		v := any("right")
		switch name {
		case "layout":
			v = fmt.Sprint("number ", mb.layout.number.place())
		case "IPv4 identification":
			v = mb.id
		case "sequence number":
			v = mb.seq
		case "acknowledgement number":
			v = mb.ack
		case "window":
			v = mb.window
		case "TSval":
			v = mb.tsval
		case "TSecr":
			v = mb.tsecr
		case "holes":
			v = g.Values[i*g.holes]
		}
		all = append(all, fmt.Sprint(v))
	}
	return strings.Join(all, ", ")
}

// A worker carries the example over, twice: once as it is, once step by step.
type worker struct {
	*exchange
	out   strings.Builder
	steps [][]workedStep
	bytes [][]byte
	bare  []int // bytes of the packets of each frame
}

// carry sends packets in a frame that is encoded step by step, and then decoded.
func (w *worker) carry(d int, packets [][]byte) {
	w.t.Helper()
	for _, b := range packets {
		w.add(d, b)
	}
	g := w.gateways[d]
	f := &frame{groups: g.groups, packets: g.packets, digest: g.digest}
	t := &tracer{Encoder: g.enc}
	f.Result = t.trace(Frame{Now: w.now, Groups: g.groups, Reuse: g.reuse()})
	size := g.bytes
	g.clear()
	w.way[d] = append(w.way[d], f)
	w.deliver(d)
	w.steps = append(w.steps, t.steps)
	w.bytes = append(w.bytes, wire.AppendFrame(nil, wire.Frame{Digest: f.digest, Control: f.Control, Literals: f.Literals}))
	w.bare = append(w.bare, size)
}

// example makes the example's text, and checks that Encode writes the same frames.
func example(t *testing.T) string {
	plain := newExchange(t, Config{})
	w := &worker{exchange: newExchange(t, Config{})}
	for i, s := range codectest.Worked() {
		plain.now, w.now = s.At, s.At
		want := plain.send(s.Direction, s.Packets...)
		w.carry(s.Direction, s.Packets)
		if got := wire.AppendFrame(nil, wire.Frame{Digest: want.digest, Control: want.Control, Literals: want.Literals}); string(got) != string(w.bytes[i]) {
			t.Fatalf("frame %d step by step is %x, %x by Encode", i+1, w.bytes[i], got)
		}
	}
	w.describePackets()
	w.describeFrames("Down: a message, and the next one", 0, 2)
	w.describeFrames("Up: the acknowledgements of the one, and of the other", 1, 3)
	w.describeState()
	return w.out.String()
}

func (w *worker) say(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }

func (w *worker) describePackets() {
	b := codectest.Worked()[0].Packets[0]
	w.say("The broker, 10.2.0.10, sends a message of the topic `plant/7` to three subscribers,")
	w.say("each with a packet identifier of its own (MQTT, QoS 1). This is the first of three packets, %d bytes:\n", len(b))
	w.say("    IPv4     %s", hex.EncodeToString(b[:20]))
	w.say("    TCP      %s", hex.EncodeToString(b[20:40]))
	w.say("    options  %s", hex.EncodeToString(b[40:52]))
	w.say("    PUBLISH  %s   %q\n", hex.EncodeToString(b[52:]), b[52:])
	e := w.encoder(1)
	f := e.contexts[0]
	w.say("Its header has a layout, the bytes that other flows have as well, and fields, of which there")
	w.say("are zeros in the layout. Its payload is one span: a body, and holes in it for what belongs to the flow.\n")
	w.say("    layout   %s", hex.EncodeToString(f.layout.bytes))
	w.say("    body     %q", e.templates.table[0].body(1))
	w.say("    holes    %s\n", holesOf(e.templates.table[0].holes))
	w.say("The three packets have the same kind of header, flags, body and holes, so they are one group.")
	w.say("The acknowledgements, %d bytes each, are another, in a frame that goes up.", len(codectest.Worked()[1].Packets[0]))
}

// describeFrames has two frames of one direction beside one another.
func (w *worker) describeFrames(title string, first, second int) {
	w.say("\n**%s.** %d bytes of packets become a frame of %d, and then %d become %d.\n", title,
		w.bare[first], len(w.bytes[first]), w.bare[second], len(w.bytes[second]))
	w.say("| step | first | bits | second | bits |")
	w.say("|---|---|---:|---|---:|")
	a, b := w.steps[first], w.steps[second]
	if len(a) != len(b) {
		w.t.Fatalf("%d steps and %d", len(a), len(b))
	}
	sum := [2]float64{}
	for i := range a {
		if a[i].name != b[i].name {
			w.t.Fatalf("%s beside %s", a[i].name, b[i].name)
		}
		w.say("| %s | %s | %.2f | %s | %.2f |", a[i].name, a[i].value, a[i].bits, b[i].value, b[i].bits)
		sum[0] += a[i].bits
		sum[1] += b[i].bits
	}
	w.say("| together | | %.2f | | %.2f |\n", sum[0], sum[1])
	for _, i := range []int{first, second} {
		w.sayFrame(w.bytes[i])
	}
}

// sayFrame takes a frame without literals apart: length, digest, control field.
func (w *worker) sayFrame(b []byte) {
	f, n, err := wire.ParseFrame(b)
	if err != nil || n != len(b) || len(f.Literals) != 0 {
		w.t.Fatalf("frame %x: %v", b, err)
	}
	head := len(b) - len(f.Control)
	w.say("    length %x  digest %x  control", b[:head-4], b[head-4:head])
	for c := f.Control; len(c) > 0; {
		k := min(len(c), 40)
		w.say("      %x", c[:k])
		c = c[k:]
	}
}

// describeState says what is remembered of the direction down, at both ends alike.
func (w *worker) describeState() {
	w.report(1) // says that the acknowledgements have come
	s := &w.decoder(1).state
	w.say("\n**What both ends then know** of the direction down:\n")
	w.say("| context | flow | next seq | ack | counter 0 | TSval less clock | reverse |")
	w.say("|---|---|---:|---:|---:|---:|---|")
	for i, f := range s.contexts {
		w.say("| CID %d | to %v:%d | %d | %d | %d | %d | peer's CID %d |", i, f.key.DstAddr(), f.key.DstPort,
			f.end, f.ack, f.counters[0], f.offset, f.reverse.place())
	}
	t := &s.templates.table[0]
	var set []string
	for _, m := range t.set {
		set = append(set, fmt.Sprint(m.cid.place()))
	}
	w.say("\nTemplate 0 has the bodies %q and %q, newest first, and a set: CID %s.", t.body(0), t.body(1), strings.Join(set, ", "))
	w.say("The far end's packets came out as they went in; their digest said so.")
}

// The example in the documents is what the code does, step by step, and the steps are
// those of Encode.
func TestWorkedExample(t *testing.T) {
	text := example(t)
	for _, name := range worked {
		t.Run(filepath.Base(name), func(t *testing.T) {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			before, rest, ok := strings.Cut(string(b), workedBegin)
			have, after, ok2 := strings.Cut(rest, workedEnd)
			if !ok || !ok2 {
				t.Fatalf("no place for the example, between %q and %q", workedBegin, workedEnd)
			}
			if *update {
				if err := os.WriteFile(name, []byte(before+workedBegin+text+workedEnd+after), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if have != text {
				t.Errorf("the example is out of date; it is now\n%s", text)
			}
		})
	}
}
