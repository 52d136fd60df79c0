package virtio_test

import (
	"bytes"
	"encoding/binary"
	"math"

	"sheaf/netstack/virtio"
	"sheaf/netstack/virtio/virtiotest"
)

// A segment is a piece of a guest's memory.
type segment struct{ addr, n uint64 }

// oracleChain reads the chain at head as the specification has it, slowly and with no
// regard for a guest that writes meanwhile. ok is false if the guest has broken a rule.
// tables are the descriptors themselves.
func oracleChain(r virtiotest.Ring, head uint16, writable bool) (segments, tables []segment, ok bool) {
	table, entries, index, inside := r.Config.Desc, uint32(r.Config.Size), head, false
	var total uint64
	for {
		if uint32(index) >= entries {
			return nil, nil, false
		}
		at := segment{table + virtiotest.DescLen*uint64(index), virtiotest.DescLen}
		b := r.Memory.AppendRead(nil, at.addr, virtiotest.DescLen)
		if len(b) < virtiotest.DescLen {
			return nil, nil, false
		}
		tables = append(tables, at)
		addr, n := binary.LittleEndian.Uint64(b), uint64(binary.LittleEndian.Uint32(b[8:]))
		flags, following := binary.LittleEndian.Uint16(b[12:]), binary.LittleEndian.Uint16(b[14:])
		if flags&indirect != 0 {
			if inside || r.Config.Features&virtio.FeatureIndirect == 0 || flags&next != 0 || n == 0 || n%16 != 0 {
				return nil, nil, false
			}
			table, entries, index, inside = addr, uint32(n/16), 0, true
			continue
		}
		total += n
		if (flags&write != 0) != writable || n == 0 || total > math.MaxInt32 || len(segments) == r.Config.Size {
			return nil, nil, false
		}
		if !oracleMapped(r.Memory, addr, n) {
			return nil, nil, false
		}
		segments = append(segments, segment{addr, n})
		if flags&next == 0 {
			return segments, tables, true
		}
		index = following
	}
}

// oracleMapped tells whether all bytes of a piece are in the memory.
func oracleMapped(m *virtiotest.Memory, addr, n uint64) bool {
	for n > 0 {
		b := m.At(addr, int(n))
		if len(b) == 0 {
			return false
		}
		addr, n = addr+uint64(len(b)), n-uint64(len(b))
	}
	return true
}

// overlap tells whether any of a is where any of b is, but for itself.
func overlap(a, b []segment) bool {
	for i := range a {
		for j := range b {
			if &a[i] != &b[j] && (a[i].addr-b[j].addr < b[j].n || b[j].addr-a[i].addr < a[i].n) {
				return true
			}
		}
	}
	return false
}

// length is the sum of the segments' lengths.
func length(segments []segment) (n int) {
	for _, s := range segments {
		n += int(s.n)
	}
	return n
}

// oracleHead returns the head at index in the available ring.
func oracleHead(r virtiotest.Ring, index uint16) uint16 {
	at := uint64(int(index) % r.Config.Size)
	return binary.LittleEndian.Uint16(r.Memory.At(r.Config.Avail+4+2*at, 2))
}

// A snapshot is a guest's memory before a device does something.
type snapshot struct {
	ring   virtiotest.Ring
	before [][]byte
}

func (s *snapshot) take(r virtiotest.Ring) {
	s.ring = r
	for i, region := range r.Memory.Regions() {
		if i == len(s.before) {
			s.before = append(s.before, nil)
		}
		s.before[i] = append(s.before[i][:0], region.Data...)
	}
}

// strayed returns the first address that has changed and is neither in the used ring nor in
// a segment.
func (s *snapshot) strayed(segments []segment) (addr uint64, ok bool) {
	used := segment{s.ring.Config.Used, uint64(6 + 8*s.ring.Config.Size)}
	segments = append(segments, used)
	for i, region := range s.ring.Memory.Regions() {
		if bytes.Equal(region.Data, s.before[i]) {
			continue
		}
		for k, b := range region.Data {
			if b == s.before[i][k] {
				continue
			}
			addr := region.Guest + uint64(k)
			inside := false
			for _, s := range segments {
				inside = inside || addr-s.addr < s.n
			}
			if !inside {
				return addr, true
			}
		}
	}
	return 0, false
}
