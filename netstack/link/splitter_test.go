package link

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// wired returns frames as they stand in a stream.
func wired(frames ...[]byte) (b []byte) {
	for _, f := range frames {
		b = binary.BigEndian.AppendUint32(b, uint32(len(f)))
		b = append(b, f...)
	}
	return b
}

// split feeds a splitter what a socket gives, at most some bytes at a time as cuts has
// them, over and over.
func split(input []byte, cuts []byte) (frames [][]byte, invalid uint64, err error) {
	s := newSplitter()
	for i := 0; ; i++ {
		for {
			f, err := s.next()
			if err != nil {
				return frames, s.invalid, err
			}
			if f == nil {
				break
			}
			frames = append(frames, bytes.Clone(f))
		}
		if len(input) == 0 {
			return frames, s.invalid, nil
		}
		room := s.room()
		if len(room) == 0 {
			panic("no room")
		}
		if len(cuts) > 0 {
			room = room[:min(len(room), 1+int(cuts[i%len(cuts)]))]
		}
		n := copy(room, input)
		s.filled(n)
		input = input[n:]
	}
}

// reference finds the same in one piece, in plain words.
func reference(input []byte) (frames [][]byte, invalid uint64, fault bool) {
	for len(input) >= 4 {
		length := int64(binary.BigEndian.Uint32(input))
		if length == 0 || length > 69632 {
			return frames, invalid, true
		}
		frame := length >= 14 && length <= 65535
		if !frame {
			invalid++
		}
		if int64(len(input)-4) < length {
			break
		}
		if frame {
			frames = append(frames, input[4:4+length])
		}
		input = input[4+length:]
	}
	return frames, invalid, false
}

func FuzzSplitter(f *testing.F) {
	f.Add(wired(make([]byte, 60), make([]byte, 14)), []byte{0})
	f.Add([]byte{0, 0, 0xff, 0xff, 1, 2}, []byte{255})
	f.Add([]byte{0, 1, 0, 0, 1, 2}, []byte{255})
	f.Add(wired(make([]byte, 13), make([]byte, 14), nil), []byte{2})
	f.Add([]byte{0, 1, 0x10, 1, 5}, []byte{})
	f.Add([]byte{0, 0}, []byte{})
	f.Fuzz(func(t *testing.T, input, cuts []byte) {
		frames, invalid, err := split(input, cuts)
		want, wantInvalid, fault := reference(input)
		if fault != (err != nil) || err != nil && !errors.Is(err, errLength) {
			t.Fatalf("error %v, fault %v", err, fault)
		}
		if invalid != wantInvalid {
			t.Errorf("%d invalid, want %d", invalid, wantInvalid)
		}
		if len(frames) != len(want) {
			t.Fatalf("%d frames, want %d", len(frames), len(want))
		}
		for i := range frames {
			if !bytes.Equal(frames[i], want[i]) {
				t.Errorf("frame %d has %d bytes, want %d", i, len(frames[i]), len(want[i]))
			}
		}
	})
}

// A length at each bound, and past it.
func TestSplitterBounds(t *testing.T) {
	for _, c := range []struct {
		length  int
		frames  int
		invalid uint64
		fault   bool
	}{
		{0, 0, 0, true},
		{1, 1, 1, false},
		{MinFrame - 1, 1, 1, false},
		{MinFrame, 2, 0, false},
		{MaxFrame, 2, 0, false},
		{MaxFrame + 1, 1, 1, false},
		{maxLength, 1, 1, false},
		{maxLength + 1, 0, 0, true},
	} {
		frames, invalid, err := split(wired(make([]byte, c.length), make([]byte, 60)), nil)
		if len(frames) != c.frames || invalid != c.invalid || (err != nil) != c.fault {
			t.Errorf("length %d: %d frames, %d invalid, %v", c.length, len(frames), invalid, err)
		}
	}
}

// Write leaves out what is no frame, and stops where there is no room.
func TestStage(t *testing.T) {
	sized := func(sizes ...int) (frames [][]byte) {
		for _, n := range sizes {
			frames = append(frames, make([]byte, n))
		}
		return frames
	}
	for _, c := range []struct {
		sizes      []int
		room, n, l int
	}{
		{[]int{60, 60}, 128, 2, 128},
		{[]int{60, 60}, 127, 1, 64},
		{[]int{13, 60, 0, MaxFrame + 1}, 64, 4, 64},
		{[]int{60, 13, 60}, 64, 2, 64},
		{[]int{MaxFrame, 14}, stagedSize, 2, 4 + MaxFrame + 18},
	} {
		got, n := stage(make([]byte, 0, c.room), sized(c.sizes...))
		if n != c.n || len(got) != c.l {
			t.Errorf("%v in %d bytes: done with %d, %d bytes", c.sizes, c.room, n, len(got))
		}
	}
	for written, want := range map[int]int{0: 0, 63: 0, 64: 1, 127: 1, 128: 2} {
		if n := whole(sized(60, 13, 60), written); n != want {
			t.Errorf("%d bytes written: %d frames, want %d", written, n, want)
		}
	}
}
