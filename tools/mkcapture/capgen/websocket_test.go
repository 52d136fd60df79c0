package capgen

import (
	"bytes"
	"fmt"
	"testing"

	"sheaf/parsers/websocket"
)

// unframe checks that a stream is an HTTP head and whole frames, masked or not, and
// returns what is in those of data.
func unframe(b []byte, masked bool) (data []byte, err error) {
	for i := 0; len(b) > 0; i++ {
		m, n, err := websocket.Parse(b)
		switch {
		case err != nil:
			return nil, err
		case (m.Name == websocket.Upgrade) != (i == 0):
			return nil, fmt.Errorf("message %d is %v", i, m.Name)
		case i > 0 && m.Masked != masked:
			return nil, fmt.Errorf("frame %d: masked %t, want %t", i, m.Masked, masked)
		case m.Name == websocket.Binary:
			data = m.AppendPayload(data, b[:n])
		}
		b = b[n:]
	}
	return data, nil
}

func TestFrames(t *testing.T) {
	c := &conn{sim: &sim{rng: newRand(1)}}
	for _, size := range []int{0, 125, 126, 65535, 65536} {
		data := bytes.Repeat([]byte("x"), size)
		for _, from := range []*endpoint{&c.client, &c.broker} {
			b := c.appendFrame(nil, from, frameBinary, data)
			m, n, err := websocket.Parse(b)
			if err != nil || n != len(b) || m.Masked != (from == &c.client) || !bytes.Equal(m.AppendPayload(nil, b), data) {
				t.Errorf("frame of %d bytes: %+v of %d, %v", size, m, n, err)
			}
		}
	}
}
