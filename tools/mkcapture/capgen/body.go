package capgen

import (
	"math/rand/v2"
	"strconv"
	"time"
)

// A walk is a value that drifts: a decimal number, kept as an integer so that
// it is the same on every machine.
type walk struct {
	value, low, high int
	step             int // greatest change
	decimals         int
}

func (w *walk) drift(r *rand.Rand) {
	w.value += r.IntN(2*w.step+1) - w.step
	w.value = min(max(w.value, w.low), w.high)
}

// appendField appends a name and the value as JSON, after a comma.
func (w *walk) appendField(dst []byte, name string) []byte {
	return appendDecimal(appendName(dst, name), w.value, w.decimals)
}

func appendName(dst []byte, name string) []byte {
	dst = append(dst, `,"`...)
	dst = append(dst, name...)
	return append(dst, `":`...)
}

// appendDecimal appends v / 10^decimals.
func appendDecimal(dst []byte, v, decimals int) []byte {
	if v < 0 {
		dst = append(dst, '-')
		v = -v
	}
	unit := 1
	for range decimals {
		unit *= 10
	}
	dst = strconv.AppendInt(dst, int64(v/unit), 10)
	if decimals == 0 {
		return dst
	}
	dst = append(dst, '.')
	for unit /= 10; unit > 0; unit /= 10 {
		dst = append(dst, '0'+byte(v/unit%10))
	}
	return dst
}

func appendSeqTime(dst []byte, seq int, now time.Duration) []byte {
	dst = append(dst, `"seq":`...)
	dst = strconv.AppendInt(dst, int64(seq), 10)
	dst = append(dst, `,"ts":`...)
	return strconv.AppendInt(dst, Epoch.UnixMilli()+now.Milliseconds(), 10)
}

// An alarm is the body of the fan-out workloads, about 116 bytes.
type alarm struct {
	seq                    int
	temp, press, flow, rpm walk
}

func newAlarm() *alarm {
	return &alarm{
		temp:  walk{value: 6108, low: 5000, high: 9000, step: 8, decimals: 2},
		press: walk{value: 4201, low: 3000, high: 6000, step: 14, decimals: 3},
		flow:  walk{value: 1743, low: 1000, high: 3000, step: 22, decimals: 2},
		rpm:   walk{value: 1481, low: 1200, high: 1800, step: 2},
	}
}

// appendBody appends the next message's body.
func (a *alarm) appendBody(dst []byte, r *rand.Rand, now time.Duration) []byte {
	a.seq++
	for _, w := range []*walk{&a.temp, &a.press, &a.flow, &a.rpm} {
		w.drift(r)
	}
	dst = appendSeqTime(append(dst, '{'), a.seq, now)
	dst = append(dst, `,"src":"line4/press2"`...)
	dst = a.temp.appendField(dst, "temp")
	dst = a.press.appendField(dst, "press")
	dst = a.flow.appendField(dst, "flow")
	dst = a.rpm.appendField(dst, "rpm")
	return append(dst, `,"state":"RUN"}`...)
}

// A reading is the body of the telemetry workload, about 137 bytes.
type reading struct {
	id                                     string
	seq                                    int
	temp, hum, pres, vbat, rssi, lat, long walk
}

func newReading(id string, r *rand.Rand) *reading {
	near := func(v, spread int) int { return v + r.IntN(2*spread+1) - spread }
	return &reading{
		id:   id,
		temp: walk{value: near(2150, 400), low: 0, high: 4500, step: 14, decimals: 2},
		hum:  walk{value: near(600, 150), low: 200, high: 950, step: 4, decimals: 1},
		pres: walk{value: near(101300, 400), low: 95000, high: 105000, step: 8, decimals: 2},
		vbat: walk{value: near(3500, 200), low: 2800, high: 4200, step: 1, decimals: 3},
		rssi: walk{value: near(-70, 12), low: -110, high: -40, step: 4},
		lat:  walk{value: near(4879500, 2000), low: 4800000, high: 4900000, decimals: 5},
		long: walk{value: near(1189800, 2000), low: 1100000, high: 1200000, decimals: 5},
	}
}

// appendBody appends the next message's body.
func (a *reading) appendBody(dst []byte, r *rand.Rand, now time.Duration) []byte {
	for _, w := range []*walk{&a.temp, &a.hum, &a.pres, &a.vbat, &a.rssi, &a.lat, &a.long} {
		w.drift(r)
	}
	dst = append(dst, `{"id":"`...)
	dst = append(dst, a.id...)
	dst = append(dst, `","ts":`...)
	dst = strconv.AppendInt(dst, Epoch.UnixMilli()+now.Milliseconds(), 10)
	dst = append(dst, `,"seq":`...)
	dst = strconv.AppendInt(dst, int64(a.seq), 10)
	dst = a.temp.appendField(dst, "temp")
	dst = a.hum.appendField(dst, "hum")
	dst = a.pres.appendField(dst, "pres")
	dst = a.vbat.appendField(dst, "vbat")
	dst = a.rssi.appendField(dst, "rssi")
	dst = a.lat.appendField(dst, "lat")
	dst = a.long.appendField(dst, "lon")
	a.seq++
	return append(dst, '}')
}

// appendRecord appends the body of a mixed topic: fields of several kinds with
// new values, until it is about size bytes.
func appendRecord(dst []byte, r *rand.Rand, seq int, now time.Duration, size int) []byte {
	states := [...]string{`"OK"`, `"IDLE"`, `"RUNNING"`, `"WARN"`}
	names := [...]string{"temperature", "pressure", "status", "message", "position", "operator"}
	start := len(dst)
	dst = appendSeqTime(append(dst, '{'), seq, now)
	for i := 0; len(dst)-start < size-12; i++ {
		dst = appendName(dst, names[i%len(names)]+strconv.Itoa(i))
		switch i % len(names) {
		case 0, 4:
			dst = appendDecimal(dst, r.IntN(200000), 3)
		case 1, 5:
			dst = append(dst, states[r.IntN(len(states))]...)
		case 2:
			dst = append(dst, '[')
			dst = strconv.AppendInt(dst, r.Int64N(1000), 10)
			dst = append(dst, ',')
			dst = strconv.AppendInt(dst, r.Int64N(1000), 10)
			dst = append(dst, ',')
			dst = strconv.AppendInt(dst, r.Int64N(8), 10)
			dst = append(dst, ']')
		case 3:
			dst = strconv.AppendBool(dst, r.IntN(2) == 0)
		}
	}
	return append(dst, '}')
}
