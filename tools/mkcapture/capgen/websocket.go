package capgen

import (
	"crypto/sha1"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"
)

// webSocketPort is where brokers like to listen for MQTT over WebSocket.
const webSocketPort = 9001

// First bytes of WebSocket frames (RFC 6455, 5.2), each a message of its own.
const (
	frameBinary = 0x82
	frameClose  = 0x88
)

// message sends an MQTT message like transmit, in a frame where the connection is
// a WebSocket.
func (c *conn) message(from *endpoint, m []byte, mode ackMode, arrived func()) {
	if c.sim.cfg.WebSocket {
		m = c.appendFrame(nil, from, frameBinary, m)
	}
	c.transmit(from, m, mode, arrived)
}

// appendFrame appends a frame. A client's is masked with a key that nobody
// can guess (RFC 6455, 5.3).
func (c *conn) appendFrame(dst []byte, from *endpoint, first byte, data []byte) []byte {
	mask := byte(0)
	if from == &c.client {
		mask = 0x80
	}
	dst = append(dst, first)
	switch n := len(data); {
	case n < 126:
		dst = append(dst, mask|byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, mask|126), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint64(append(dst, mask|127), uint64(n))
	}
	if mask == 0 {
		return append(dst, data...)
	}
	key := binary.BigEndian.AppendUint32(nil, c.sim.rng.Uint32())
	dst = append(dst, key...)
	for i, b := range data {
		dst = append(dst, b^key[i%4])
	}
	return dst
}

// upgrade turns the connection into a WebSocket, where it is to be one (RFC 6455,
// 1.3), and then runs upgraded at the client.
func (c *conn) upgrade(upgraded func()) {
	s := c.sim
	if !s.cfg.WebSocket {
		upgraded()
		return
	}
	nonce := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, s.rng.Uint64()), s.rng.Uint64())
	key := base64.StdEncoding.EncodeToString(nonce)
	accept := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	request := fmt.Sprintf("GET /mqtt HTTP/1.1\r\nHost: broker.example:%d\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n", webSocketPort, key)
	answer := fmt.Sprintf("HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n", base64.StdEncoding.EncodeToString(accept[:]))
	c.transmit(&c.client, []byte(request), ackNow, func() {
		s.onBroker(80*time.Microsecond, 160*time.Microsecond, func() {
			c.transmit(&c.broker, []byte(answer), ackNow, func() {
				s.after(s.between(100*time.Microsecond, 400*time.Microsecond), upgraded)
			})
		})
	})
}

// goodbye is the last that a client sends.
func (c *conn) goodbye() []byte {
	disconnect := []byte{mqttDisconnect, 0}
	if !c.sim.cfg.WebSocket {
		return disconnect
	}
	b := c.appendFrame(nil, &c.client, frameBinary, disconnect)
	return c.appendFrame(b, &c.client, frameClose, []byte{1000 >> 8, 1000 & 0xff})
}
