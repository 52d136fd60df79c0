package aggregate

import (
	"net/netip"
	"testing"
	"time"

	"sheaf/engine/aggregate/seal"
	"sheaf/parsers/builtin"
)

// Records are counted that are carried as they are though their place in the stream is not
// known, by why: there are no secrets, or their server is not named, as which those count
// that find no room in a table.
func TestCarriedRecords(t *testing.T) {
	for _, tt := range []struct {
		served bool
		limit  int
		want   [seal.NumCarried]uint64
	}{
		{served: false, limit: 20, want: [seal.NumCarried]uint64{seal.CarriedUnnamed: 3 * 20}},
		{served: true, limit: 20, want: [seal.NumCarried]uint64{seal.CarriedSecrets: 3 * 20}},
		{served: true, limit: 19, want: [seal.NumCarried]uint64{seal.CarriedSecrets: 3 * 19, seal.CarriedUnnamed: 3}},
	} {
		cfg := seal.Config{Served: func(server netip.AddrPort) bool { return tt.served && server.Port() == 1883 }}
		lane, err := NewLane(Config{TLS: seal.NewTable(cfg, tt.limit), Registry: builtin.Registry()})
		if err != nil {
			t.Fatal(err)
		}
		m := &lane.Merger
		for i, b := range records(3) {
			if err := m.Add(time.Duration(i), b); err != nil {
				t.Fatal(err)
			}
		}
		if got := &m.Stats().TLS; got.Carried != tt.want || got.Records != 0 {
			t.Errorf("served %v, %d connections: %v carried, %d opened, want %v", tt.served, tt.limit, got.Carried, got.Records, tt.want)
		}
	}
}

// Connections to a server that is named and of which the beginning was not seen are still
// of their protocol where they turn out to be without TLS.
func TestPlainOfNamedServer(t *testing.T) {
	cfg := seal.Config{Served: func(netip.AddrPort) bool { return true }}
	lane, err := NewLane(Config{TLS: seal.NewTable(cfg, 20), Registry: builtin.Registry()})
	if err != nil {
		t.Fatal(err)
	}
	publish := segment{Port: 40000, Down: true, Flags: 0x18, Window: 500, Payload: []byte("\x30\x05\x00\x01tab")}
	for i := range 3 {
		if err := lane.Merger.Add(time.Duration(i), publish.Packet()); err != nil {
			t.Fatal(err)
		}
		publish.Seq += uint32(len(publish.Payload))
	}
	lane.Merger.Flush(nil, time.Second, FlushEnd)
	messages := uint64(0)
	for key, e := range lane.Merger.Stats().Messages {
		if key.Event == "t" {
			messages += e.Messages
		}
	}
	if messages != 3 {
		t.Errorf("%d messages of 3 were seen: %v", messages, lane.Merger.Stats().Messages)
	}
}
