package seal

import (
	"bytes"
	"testing"

	"sheaf/parsers"
)

// TestSecretsGoWithTheConnection holds that nothing is kept of a connection's secrets when
// both directions have ended, or one was reset: a reset that is sent counts when the peer
// has it, since what it sent before comes before that.
func TestSecretsGoWithTheConnection(t *testing.T) {
	const fin, rst, syn = parsers.FlagFIN, parsers.FlagRST, parsers.FlagSYN
	for name, tt := range map[string]struct {
		do   func(c *Conn, passed func(flags uint8))
		gone bool
	}{
		"one has ended":             {func(c *Conn, _ func(uint8)) { c.End(false) }, false},
		"the other has":             {func(_ *Conn, passed func(uint8)) { passed(fin) }, false},
		"both have":                 {func(c *Conn, passed func(uint8)) { c.End(false); passed(fin) }, true},
		"both, the other way round": {func(c *Conn, passed func(uint8)) { passed(fin); c.End(false) }, true},
		"a reset came":              {func(_ *Conn, passed func(uint8)) { passed(rst) }, true},
		"a reset was sent":          {func(c *Conn, _ func(uint8)) { c.End(true); c.table.Written(3); c.table.Acknowledged(2) }, false},
		"and acknowledged":          {func(c *Conn, _ func(uint8)) { c.End(true); c.table.Written(3); c.table.Acknowledged(3) }, true},
		"ports in use again": {func(c *Conn, _ func(uint8)) {
			c.End(true)
			c.table.Written(3)
			c.Begin(1)
			c.table.Acknowledged(3)
		}, false},
		"or by the peer": {func(c *Conn, passed func(uint8)) { passed(fin); passed(syn); c.End(false) }, false},
	} {
		_, c := telling(t)
		material := bytes.Repeat([]byte{1}, 32)
		c.suite = AES128GCM13
		c.set(stageTraffic, material, material)
		c.Secrets()
		said, theirs := c.said[stageTraffic].material, c.theirs[stageTraffic].material
		if len(said) != 32 || len(theirs) != 32 {
			t.Fatal("nothing was told")
		}
		back := c.key.Reverse()
		tt.do(c, func(flags uint8) { c.table.Passed(&back, flags, nil) })
		for what, b := range map[string][]byte{"told": said, "known": theirs} {
			if gone := bytes.Equal(b, make([]byte, 32)); gone != tt.gone {
				t.Errorf("%s: what was %s is overwritten: %v", name, what, gone)
			}
		}
	}
}
