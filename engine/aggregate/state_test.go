package aggregate

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// unshared are the fields below a memory that the two ends need not have alike.
// All others are compared: a new field is shared until it is listed here.
var unshared = map[string]string{
	"memory.w":          "which end it is",
	"memory.r":          "which end it is",
	"memory.items":      "of the last frame only; the views that they change are compared",
	"memory.residuals":  "scratch",
	"memory.extras":     "scratch",
	"memory.sacks":      "of a frame at one end, of a group at the other",
	"memory.sacked":     "scratch",
	"memory.texts":      "of a frame at one end, of a group at the other",
	"memory.present":    "scratch",
	"memory.candidates": "scratch",
	"memory.scratch":    "scratch",
	"memory.read":       "the reader's",
	"memory.bodyBuf":    "the reader's",
	"memory.payload":    "the reader's",
	"flow.mark":         "of one group",
	"flow.place":        "of one group",
	"flow.dull":         "the writer's choice of literals",
	"slot.source":       "what the writer finds a slot by",
	"slots.dropped":     "the writer's",
}

// A comparison walks what two memories remember, field by field.
type comparison struct {
	models bool                              // look at them, too
	twins  map[unsafe.Pointer]unsafe.Pointer // what was pointed to and is the same
	used   map[string]bool                   // of unshared
}

func newComparison() comparison {
	return comparison{models: true, twins: map[unsafe.Pointer]unsafe.Pointer{}, used: map[string]bool{}}
}

// memories returns where the memories of the two ends of a direction differ first,
// and how; nothing where they are the same. The writer has to have written no
// frame that the reader does not have yet, and to have rebuilt none of the peer's
// since.
func (c *comparison) memories(writer, reader *memory) string {
	if d := c.differ(reflect.ValueOf(writer).Elem(), reflect.ValueOf(reader).Elem()); d != "" {
		return "memory" + d
	}
	return ""
}

// differ returns the way from a and b to where they differ, and how they do.
func (c *comparison) differ(a, b reflect.Value) string {
	p := planOf(a.Type())
	if p.flat && bytes.Equal(p.bytes(a), p.bytes(b)) {
		return "" // else which of its parts it is, is found below
	}
	switch a.Kind() {
	case reflect.Struct:
		return c.differFields(p, a, b)
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return fmt.Sprintf(" has %d elements, %d at the reader", a.Len(), b.Len())
		}
		for i := range a.Len() {
			if d := c.differ(a.Index(i), b.Index(i)); d != "" {
				return fmt.Sprintf("[%d]%s", i, d)
			}
		}
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() {
			if a.IsNil() != b.IsNil() {
				return " is nil at one end only"
			}
			return ""
		}
		x, y := a.UnsafePointer(), b.UnsafePointer()
		if twin, ok := c.twins[x]; !ok {
			c.twins[x] = y
			return c.differ(a.Elem(), b.Elem())
		} else if twin != y {
			return " is the same as that of another place at one end only"
		}
	default:
		if !a.Equal(b) {
			return fmt.Sprintf(" is %v, %v at the reader", a, b)
		}
	}
	return ""
}

func (c *comparison) differFields(p *plan, a, b reflect.Value) string {
	if a.Type() == reflect.TypeFor[models]() && !c.models {
		return ""
	}
	for i, f := range p.fields {
		if p.unshared[i] {
			c.used[p.names[i]] = true
		} else if d := c.differ(a.Field(i), b.Field(i)); d != "" {
			return "." + f + d
		}
	}
	return ""
}

// A plan is what is known of a type before its values are looked at.
type plan struct {
	flat     bool // nothing but numbers without gaps between them, or a slice of such
	size     uintptr
	fields   []string
	names    []string // with the type's
	unshared []bool
}

var plans sync.Map // of reflect.Type: making one takes longer than most comparisons

func planOf(t reflect.Type) *plan {
	known, ok := plans.Load(t)
	if ok {
		return known.(*plan)
	}
	p := &plan{flat: flat(t), size: t.Size()}
	switch t.Kind() {
	case reflect.Slice:
		p.flat, p.size = flat(t.Elem()), t.Elem().Size()
	case reflect.Struct:
		for i := range t.NumField() {
			name := t.Name() + "." + t.Field(i).Name
			_, un := unshared[name]
			p.fields = append(p.fields, t.Field(i).Name)
			p.names = append(p.names, name)
			p.unshared = append(p.unshared, un)
		}
	}
	plans.Store(t, p)
	return p
}

// bytes returns those of a value whose type is flat, borrowed.
func (p *plan) bytes(v reflect.Value) []byte {
	if v.Kind() == reflect.Slice {
		return unsafe.Slice((*byte)(v.UnsafePointer()), uintptr(v.Len())*p.size)
	}
	return unsafe.Slice((*byte)(v.Addr().UnsafePointer()), p.size)
}

func flat(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Bool, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Int,
		reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return true
	case reflect.Array:
		return flat(t.Elem())
	case reflect.Struct:
		size := uintptr(0)
		for i := range t.NumField() {
			f := t.Field(i)
			if _, ok := unshared[t.Name()+"."+f.Name]; ok || !flat(f.Type) {
				return false
			}
			size += f.Type.Size()
		}
		return size == t.Size()
	}
	return false
}

// same checks that the two ends of direction d remember the same: with every frame
// where that is little, else as often as it takes about as long as the rest. A drift
// does not go away again before what drifted gives way.
func (p *pair) same(d int) {
	p.t.Helper()
	w := &p.ends[d].Merger.writer
	if p.count[d]%(1+(len(w.flows)+len(w.slots.table))/64) == 0 {
		p.compare(d, p.count[d]%16 == 0)
	}
}

// compare checks that they do, down to the models or without them.
func (p *pair) compare(d int, models bool) {
	p.t.Helper()
	c := newComparison()
	c.models = models
	if at := c.memories(&p.ends[d].Merger.writer.memory, &p.ends[1-d].Expander.memory); at != "" {
		p.t.Fatalf("the ends drift apart with frame %d of direction %d: %s", p.count[d], d, at)
	}
}

// The comparison sees a change in anything that is shared, at any depth, and is
// not held up by what is not.
func TestDriftIsSeen(t *testing.T) {
	warm := func() (*memory, *memory) {
		p := newPair(t, Config{})
		f := newFanout(5)
		for range 3 {
			f.send(func(i int) []byte { return publish("a/b", body(f.round), 1+i) }, p.run)
			p.due(f.now + 40*time.Millisecond)
		}
		p.report(1)
		return &p.ends[1].Merger.writer.memory, &p.ends[0].Expander.memory
	}
	w, r := warm()
	c := newComparison()
	if d := c.memories(w, r); d != "" {
		t.Fatal(d)
	}
	for name := range unshared {
		if !c.used[name] {
			t.Errorf("no field %s", name)
		}
	}
	for name, change := range map[string]func(m *memory){
		"memory.clock":                   func(m *memory) { m.clock++ },
		"memory.flows[3].end":            func(m *memory) { m.flows[3].end++ },
		"memory.flows[0].layout.place":   func(m *memory) { m.flows[0].layout.place++ },
		"memory.flows[3].layout":         func(m *memory) { e := *m.flows[3].layout; m.flows[3].layout = &e },
		"memory.flows[4]":                func(m *memory) { m.flows[4] = nil },
		"memory.flows":                   func(m *memory) { m.flows = m.flows[:4] },
		"memory.layouts.after[2]":        func(m *memory) { m.layouts.after[2]++ },
		"memory.layouts.table":           func(m *memory) { m.layouts.table = m.layouts.table[:0] },
		"memory.slots.table[0].set[1]":   func(m *memory) { m.slots.table[0].set[1].misses++ },
		"memory.slots.table[0].bodies":   func(m *memory) { m.slots.table[0].bodies[1][0]++ },
		"memory.slots.newest":            func(m *memory) { m.slots.newest++ },
		"memory.peers.views[2].edges[0]": func(m *memory) { m.peers.views[2].edges[0].stamp++ },
		"memory.peers.owing":             func(m *memory) { m.peers.owing.push(2); m.peers.owing.count++ },
		"memory.models.more":             func(m *memory) { m.models.more++ },
		"memory.models.body.text.table":  func(m *memory) { *textBit(m) ^= 1 },
		"memory.acks.set":                func(m *memory) { m.acks.set = append(m.acks.set, setMember{}) },
		"memory.tags[1]":                 func(m *memory) { m.tags[1] = []byte("x") },
		"memory.lastSlot":                func(m *memory) { m.lastSlot++ },
		"memory.newest.":                 func(m *memory) { m.newest.DstPort++ },
	} {
		t.Run(name, func(t *testing.T) {
			w, r := warm()
			change(r)
			c := newComparison()
			if d := c.memories(w, r); !strings.HasPrefix(d, name) {
				t.Errorf("found %q", d)
			}
		})
	}
}

// textBit returns one Bit of the deepest model, which is wire's own.
func textBit(m *memory) *uint32 {
	v := reflect.ValueOf(m).Elem().FieldByName("models").FieldByName("body").FieldByName("text").FieldByName("table").Index(4711)
	return (*uint32)(v.Addr().UnsafePointer())
}
