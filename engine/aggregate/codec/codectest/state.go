// Package codectest compares what the two ends of a direction remember. Only tests
// import it.
//
// It takes an Encoder and a Decoder as anything that has a field named state, and goes
// through these by reflection: the package codec need not export what it remembers, and
// its own tests can import this one. A field that one end alone used would be found here
// as a difference, so that what the ends share stays plain.
package codectest

import (
	"bytes"
	"fmt"
	"reflect"
	"sync"
	"unsafe"
)

// Differ returns where what an Encoder and its Decoder remember differs first, and
// how: "state.contexts[3].end is 17, 18 at the reader"; nothing where it is the same.
// Both are pointers. The writer has to have written no frame that the reader does not
// have yet, and to have taken in none of the peer's since its last one. The models are
// much to compare, and can be left out.
func Differ(encoder, decoder any, models bool) string {
	c := comparison{models: models, twins: map[unsafe.Pointer]unsafe.Pointer{}}
	if d := c.differ(stateOf(encoder), stateOf(decoder)); d != "" {
		return "state" + d
	}
	return ""
}

// Size returns how much there is to compare besides the models: contexts and templates.
func Size(encoder any) int {
	s := stateOf(encoder)
	return s.FieldByName("contexts").Len() + s.FieldByName("templates").FieldByName("table").Len()
}

func stateOf(v any) reflect.Value { return reflect.ValueOf(v).Elem().FieldByName("state") }

// A comparison walks what two ends remember, field by field.
type comparison struct {
	models bool                              // look at them, too
	twins  map[unsafe.Pointer]unsafe.Pointer // what was pointed to and is the same
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
	for _, r := range p.runs {
		if r.fields == 1 || !bytes.Equal(r.bytes(a), r.bytes(b)) {
			if d := c.differRun(p, r, a, b); d != "" {
				return d
			}
		}
	}
	return ""
}

// differRun compares the fields of a run one by one.
func (c *comparison) differRun(p *plan, r run, a, b reflect.Value) string {
	for i := r.first; i < r.first+r.fields; i++ {
		f := p.fields[i]
		if f == "models" && !c.models {
			continue
		}
		if d := c.differ(a.Field(i), b.Field(i)); d != "" {
			return "." + f + d
		}
	}
	return ""
}

// A plan is what is known of a type before its values are looked at.
type plan struct {
	flat   bool // nothing but numbers without gaps between them, or a slice of such
	size   uintptr
	fields []string
	runs   []run // of the fields
}

// A run is fields of a struct that follow one another without gaps and are flat, or
// one field that is not.
type run struct {
	first, fields int
	offset, size  uintptr
}

// bytes returns those of a run in a struct, borrowed.
func (r run) bytes(v reflect.Value) []byte {
	return unsafe.Slice((*byte)(unsafe.Add(v.Addr().UnsafePointer(), r.offset)), r.size)
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
			f := t.Field(i)
			p.fields = append(p.fields, f.Name)
			if n := len(p.runs); n > 0 && flat(f.Type) && flat(t.Field(i-1).Type) && p.runs[n-1].offset+p.runs[n-1].size == f.Offset {
				p.runs[n-1].fields++
				p.runs[n-1].size += f.Type.Size()
			} else {
				p.runs = append(p.runs, run{i, 1, f.Offset, f.Type.Size()})
			}
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
			if !flat(f.Type) {
				return false
			}
			size += f.Type.Size()
		}
		return size == t.Size()
	}
	return false
}
