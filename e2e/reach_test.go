package e2e

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"
)

// reaching is what the reach role does: a new client of MQTT calls a broker every
// now and then, each time from the next address of some, until told to end.
type reaching struct {
	Ways  []reachingWay
	Every time.Duration
}

type reachingWay struct {
	Broker netip.AddrPort
	From   netip.Addr
}

// reached is its result: when the broker's answers came, by the way.
type reached [][]int64 // nanoseconds

// firstAfter returns how long after t the first answer came on the way.
func (r reached) firstAfter(t time.Time, way int) (time.Duration, error) {
	first := int64(0)
	for _, at := range r[way] {
		if at >= t.UnixNano() && (first == 0 || at < first) {
			first = at
		}
	}
	if first == 0 {
		return 0, fmt.Errorf("no answer on way %d", way)
	}
	return time.Duration(first - t.UnixNano()), nil
}

func reach(a reaching) (reached, error) {
	var mu sync.Mutex
	got := make(reached, len(a.Ways))
	end := make(chan struct{})
	var calls sync.WaitGroup
	for i, w := range a.Ways {
		calls.Go(func() {
			tick := time.NewTicker(a.Every)
			defer tick.Stop()
			for {
				select {
				case <-end:
					return
				case <-tick.C:
				}
				calls.Go(func() {
					if w.call() == nil {
						mu.Lock()
						defer mu.Unlock()
						got[i] = append(got[i], time.Now().UnixNano())
					}
				})
			}
		})
	}
	sayReady()
	untilTold()
	close(end)
	calls.Wait()
	return got, nil
}

// call connects and waits for the broker's answer, 3 s at most.
func (w reachingWay) call() error {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: w.From.AsSlice()}, Timeout: 3 * time.Second}
	c, err := d.Dial("tcp", w.Broker.String())
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(3 * time.Second))
	id := fmt.Sprintf("caller-%d", time.Now().UnixNano())
	connect := []byte{0x10, byte(12 + len(id)), 0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 60}
	connect = binary.BigEndian.AppendUint16(connect, uint16(len(id)))
	if _, err := c.Write(append(connect, id...)); err != nil {
		return err
	}
	var answer [4]byte
	_, err = io.ReadFull(c, answer[:])
	return err
}
