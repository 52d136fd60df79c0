package virtio_test

import (
	"bytes"

	"pgregory.net/rapid"

	"sheaf/netstack/virtio"
)

// message returns n bytes that no other message has.
func (m *model) message(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(m.random.Uint32())
	}
	return b
}

func (m *model) parts(t *rapid.T, most int) (sizes []int, total int) {
	n := rapid.IntRange(1, 5).Draw(t, "parts")
	for range n {
		k := rapid.IntRange(1, most/n).Draw(t, "part")
		sizes = append(sizes, k)
		total += k
	}
	return sizes, total
}

func (m *model) send(t *rapid.T) {
	sizes, total := m.parts(t, modelSlot)
	message := m.message(total)
	var parts [][]byte
	for rest := message; len(sizes) > 0; sizes = sizes[1:] {
		parts, rest = append(parts, rest[:sizes[0]]), rest[sizes[0]:]
	}
	if m.d.Send(parts...) {
		m.hidden = append(m.hidden, message)
	}
}

func (m *model) sendAll(*rapid.T) {
	for range modelFill {
		message := m.message(9)
		if !m.d.Send(message[:4], message[4:]) {
			break
		}
		m.hidden = append(m.hidden, message)
	}
}

func (m *model) post(t *rapid.T) {
	// The header is in the first buffer (virtio 1.2 section 5.1.6.3.1).
	sizes, total := m.parts(t, modelSlot-virtio.NetHeaderLen)
	sizes[0], total = sizes[0]+virtio.NetHeaderLen, total+virtio.NetHeaderLen
	if m.d.Post(sizes...) {
		m.hidden = append(m.hidden, make([]byte, total))
	}
}

func (m *model) postAll(*rapid.T) {
	for range modelFill {
		if !m.d.Post(13, 9) {
			break
		}
		m.hidden = append(m.hidden, make([]byte, 22))
	}
}

func (m *model) take(t *rapid.T) {
	m.watch()
	var header [12]byte
	payload := make([]byte, 5*modelSlot)
	n, ok, err := m.q.Take(header[:], payload)
	m.confined(t, nil)
	if err != nil || ok != (len(m.shown) > 0) {
		t.Fatal(n, ok, err)
	}
	if m.looked(ok); !ok {
		return
	}
	got := append(header[:min(n, 12)], payload[:max(n-12, 0)]...)
	if n != len(m.shown[0]) || !bytes.Equal(got, m.shown[0]) {
		t.Fatalf("%d bytes % x instead of % x", n, got, m.shown[0])
	}
	m.finish(1)
}

// looked notes whether the device found enough.
func (m *model) looked(enough bool) {
	if m.dry = len(m.shown); enough {
		m.dry = -1
	}
}

// finish is of the next n buffers.
func (m *model) finish(n int) {
	m.done = append(m.done, m.shown[:n]...)
	m.shown = m.shown[n:]
}

func (m *model) takeAll(t *rapid.T) {
	for len(m.shown) > 0 {
		m.take(t)
	}
	m.take(t)
}

func (m *model) give(t *rapid.T) {
	m.giveOne(t, rapid.IntRange(0, modelFrame).Draw(t, "frame"))
}

func (m *model) giveAll(t *rapid.T) {
	for m.giveOne(t, 9) {
	}
}

// giveOne gives a frame and tells whether there was room for it.
func (m *model) giveOne(t *rapid.T, n int) bool {
	header, bytes := [virtio.NetHeaderLen]byte{numBuffers: 1}, m.message(n)
	need, buffers := len(header)+n, 0
	for _, b := range m.shown {
		if buffers > 0 && (need <= 0 || !m.merge) {
			break
		}
		need -= len(b)
		buffers++
	}
	var want error
	if need > 0 && (buffers == m.d.Config.Size || !m.merge && buffers == 1) {
		want = virtio.ErrRoom
	}
	var room []segment
	if m.d.Config.Size <= 8 {
		for i := range buffers {
			segments, _, _ := oracleChain(m.d.Ring, oracleHead(m.d.Ring, m.q.Base()+uint16(i)), true)
			room = append(room, segments...)
		}
	}
	m.watch()
	var ok bool
	var err error
	if m.merge {
		ok, err = m.q.GiveMerged(&header, bytes)
	} else {
		ok, err = m.q.Give(header[:], bytes)
	}
	if err != want || ok != (need <= 0) {
		t.Fatalf("%v, %v; %d buffers, %d bytes left", ok, err, buffers, need)
	}
	if m.looked(ok || err != nil); !ok {
		m.confined(t, nil)
		return false
	}
	m.confined(t, room)
	m.given = append(m.given, frame{bytes, buffers})
	m.finish(buffers)
	return true
}

// numBuffers is where a NIC's header has the number of buffers.
const numBuffers = virtio.NetHeaderLen - 2

func (m *model) reap(t *rapid.T) {
	p, ok, err := m.d.Reap()
	if err != nil || ok != (m.used > 0) || len(p) > 0 {
		t.Fatal(p, ok, err)
	}
	if ok {
		m.used--
	}
}

func (m *model) reapFrame(t *rapid.T) {
	p, ok, err := m.d.ReapFrame()
	if err != nil || ok != (m.used > 0) {
		t.Fatal(ok, err)
	}
	if !ok {
		return
	}
	want := m.frames[0]
	if !bytes.Equal(p, want.bytes) {
		t.Fatalf("% x instead of % x", p, want.bytes)
	}
	m.frames, m.used = m.frames[1:], m.used-want.buffers
}

func (m *model) reapAll(t *rapid.T) {
	for m.used > 0 {
		m.reap(t)
	}
}

func (m *model) reapFrames(t *rapid.T) {
	for m.used > 0 {
		m.reapFrame(t)
	}
}
