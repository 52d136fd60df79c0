package codectest

import "time"

// A Sending is some packets that go in one frame.
type Sending struct {
	At        time.Duration
	Direction int // 1 is down, from the broker
	Packets   [][]byte
}

// Worked is the worked example of the documents: a message to three subscribers, their
// acknowledgements, and both once more, 50 ms later. The flows are joined in their middle.
func Worked() []Sending {
	down := []Segment{
		{Client: 1, Port: 1, ID: 700, Seq: 1000, Ack: 5000, TSval: 90_000, TSecr: 10_000},
		{Client: 2, Port: 2, ID: 800, Seq: 2000, Ack: 6000, TSval: 91_000, TSecr: 20_000},
		{Client: 3, Port: 3, ID: 900, Seq: 3000, Ack: 7000, TSval: 92_000, TSecr: 30_000},
	}
	var all []Sending
	for round, body := range []string{`{"t":21.4}`, `{"t":21.6}`} {
		messages := Sending{At: time.Duration(round) * 50 * time.Millisecond, Direction: 1}
		acks := Sending{At: messages.At + time.Millisecond, Direction: 0}
		for i := range down {
			s := &down[i]
			id := 7 + 10*i + round
			s.Down, s.Flags, s.Window, s.Payload = true, 0x18, 501, Publish("plant/7", body, id)
			messages.Packets = append(messages.Packets, s.Packet())
			up := Segment{
				Client: s.Client, Port: s.Port, ID: s.ID + 4000, Flags: 0x18, Window: 500,
				Seq: s.Ack, Ack: s.Seq + uint32(len(s.Payload)), TSval: s.TSecr + 10, TSecr: s.TSval,
				Payload: []byte{0x40, 2, 0, byte(id)},
			}
			acks.Packets = append(acks.Packets, up.Packet())
			s.Seq, s.Ack, s.ID = up.Ack, up.Seq+4, s.ID+1
			s.TSval, s.TSecr = s.TSval+50, up.TSval
		}
		all = append(all, messages, acks)
	}
	return all
}
