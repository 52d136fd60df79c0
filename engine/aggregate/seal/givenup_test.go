package seal

import (
	"bytes"
	"testing"
)

// Keys that nothing comes back to are overwritten at once, and not when the collector of
// garbage gets to them: those of the handshake behind it, a candidate that another
// replaces, and all generations but the last two. What the peer told stays, by its number.
func TestKeysGivenUpAreOverwritten(t *testing.T) {
	made := func(n byte) *Keys {
		k, err := NewKeys(AES128GCM13, bytes.Repeat([]byte{n}, 32))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	gone := func(what string, k *Keys, want bool) {
		t.Helper()
		if got := len(k.Material()) == 0; got != want {
			t.Errorf("%s: overwritten is %v", what, got)
		}
	}
	up, _ := telling(t)
	o := &up.Out
	k := &o.keys
	shake, spoilt, traffic := made(1), made(2), made(3)
	k.learn(stageHandshake, shake, 0, false)
	k.use(o, stageHandshake, 0)
	k.learn(stageTraffic, spoilt, 0, false)
	k.learn(stageTraffic, traffic, 0, false)
	gone("a candidate that was replaced", spoilt, true)
	gone("the handshake's, in use", shake, false)
	k.use(o, stageTraffic, 0)
	gone("the handshake's, behind it", shake, true)
	gone("the traffic's", traffic, false)
	second, third := made(4), made(5)
	k.follow(o, second)
	gone("the generation before", traffic, false)
	k.follow(o, third)
	gone("the one before that", traffic, true)
	gone("the generation before", second, false)

	s := &Sealer{told: []told{{made(6), stageTraffic}}, room: o.room}
	s.keys = s.told[0].keys
	s.update(&reader{})
	middle := s.keys
	s.update(&reader{})
	gone("what the peer told", s.told[0].keys, false)
	gone("a sealer's generation before", middle, true)
	gone("a sealer's, in use", s.keys, false)
}
