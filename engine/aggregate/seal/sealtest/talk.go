package sealtest

import "fmt"

// Talk writes n things that happen behind a handshake: mostly messages of MQTT's kind.
func (c *Conn) Talk(n int) {
	for i := range n {
		from := c.choose(2)
		switch c.choose(16) {
		default:
			c.Data(from, publish(i, c.choose(40)))
		case 9:
			c.Data(from, append(publish(i, 3), publish(i, 4)...))
		case 10:
			c.Data(from, c.bytes(c.choose(5000)))
		case 11:
			c.Data(from, c.bytes(c.choose(2*maxContent+1))) // records as long as they may be
		case 12:
			c.Data(from, nil)
		case 13:
			c.Update(from)
		case 14:
			c.record(from, alert, []byte{1, byte(c.choose(120))})
		case 15:
			if c.Odd {
				c.oddly(from)
			}
		}
	}
}

// publish is a PUBLISH of MQTT, with so many digits more.
func publish(i, more int) []byte {
	body := fmt.Sprintf(`{"seq":%d,"temp":%0*d}`, i, 1+more, i*i)
	b := []byte{0x30, byte(2 + 7 + len(body)), 0, 7}
	return append(append(b, "plant/7"...), body...)
}

// oddly writes what no program writes there.
func (c *Conn) oddly(from int) {
	switch c.choose(5) {
	case 0:
		c.write(from, c.bytes(1+c.choose(100)))
	case 1:
		c.Records(from, handshake, c.hello(clientHello, c.Random, 20)) // protected
	case 2:
		c.change(from)
	case 3:
		c.record(from, handshake, message(finished, nil))
	case 4: // a hello of another connection, and keys anew
		had := c.sides[from].keys
		c.sides[from].keys = nil
		c.Records(from, handshake, c.hello(byte(1+c.choose(2)), [32]byte(c.bytes(32)), 20))
		c.sides[from].keys = had
	}
}
