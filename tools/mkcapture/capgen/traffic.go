package capgen

import (
	"fmt"
	"strconv"
	"time"
)

const alarmTopic = "plant/4/alarms"

// How long the broker takes for one copy of a fan-out. With the
// acknowledgement in between, that is a packet every 15 us or so.
const (
	copyLow  = 28 * time.Microsecond
	copyHigh = 42 * time.Microsecond
)

func fanout(s *sim) {
	qos := s.cfg.qos()
	conns, start := s.connectAll(func(i int) login {
		return login{clientID: fmt.Sprintf("panel-%04d", i), topics: []string{alarmTopic}, qos: qos}
	})
	end := s.fanOut(conns, start)
	s.closeAll(conns, end)
}

func fanoutSkew(s *sim) {
	var conns []*conn
	for i := range s.cfg.Clients {
		c := s.newConn(i)
		c.midstream()
		c.packetID = uint16(s.rng.IntN(300))
		conns = append(conns, c)
	}
	s.fanOut(conns, 0)
}

// fanOut publishes alarms to all connections, and returns when all
// is quiet, unless the broker has too much to do.
func (s *sim) fanOut(conns []*conn, start time.Duration) time.Duration {
	qos, period := s.cfg.qos(), s.cfg.period()
	order := s.rng.Perm(len(conns)) // a broker's own, but always the same
	body := newAlarm()
	remaining := s.cfg.Messages
	var tick func()
	next := start
	tick = func() {
		message := body.appendBody(nil, s.rng, s.now)
		for _, i := range order {
			s.onBroker(copyLow, copyHigh, func() { conns[i].deliver(alarmTopic, qos, message) })
		}
		next += period
		if remaining--; remaining > 0 {
			s.at(next+s.between(0, 300*time.Microsecond), tick)
		}
	}
	s.at(start, tick)
	return start + time.Duration(s.cfg.Messages)*period + s.quiet()
}

// periodically calls f for each connection at its own phase, with jitter, and
// returns when all is quiet, unless the broker has too much to do.
func (s *sim) periodically(conns []*conn, start time.Duration, f func(i int)) time.Duration {
	period := s.cfg.period()
	for i := range conns {
		next := start + s.between(0, period)
		remaining := s.cfg.Messages
		var tick func()
		tick = func() {
			f(i)
			next += period
			if remaining--; remaining > 0 {
				s.at(next+s.between(0, 500*time.Microsecond), tick)
			}
		}
		s.at(next, tick)
	}
	return start + time.Duration(s.cfg.Messages+1)*period + s.quiet()
}

func telemetry(s *sim) {
	conns, start := s.connectAll(func(i int) login {
		return login{clientID: fmt.Sprintf("dev-%04d", i)}
	})
	readings := make([]*reading, len(conns))
	for i := range readings {
		readings[i] = newReading(fmt.Sprintf("dev-%04d", i), s.rng)
	}
	end := s.periodically(conns, start, func(i int) {
		topic := "site/1/dev/" + strconv.Itoa(i) + "/telemetry"
		conns[i].publish(topic, s.cfg.qos(), readings[i].appendBody(nil, s.rng, s.now))
	})
	s.closeAll(conns, end)
}

func control(s *sim) {
	const (
		status  = `{"st":"ok","mode":"auto","e":0}`
		command = `{"cmd":"keepalive","grp":"main"}`
	)
	qos, period := s.cfg.qos(), s.cfg.period()
	unit := func(i int) string { return "unit/" + strconv.Itoa(i) }
	conns, start := s.connectAll(func(i int) login {
		return login{clientID: fmt.Sprintf("unit-%04d", i), topics: []string{unit(i) + "/cmd"}, qos: qos}
	})
	end := s.periodically(conns, start, func(i int) {
		conns[i].publish(unit(i)+"/status", 0, []byte(status))
	})
	for k := range s.cfg.Messages {
		s.at(start+time.Duration(k)*period+s.between(0, time.Millisecond), func() {
			for i, c := range conns {
				s.onBroker(copyLow, copyHigh, func() { c.deliver(unit(i)+"/cmd", qos, []byte(command)) })
			}
		})
	}
	s.closeAll(conns, end)
}

// A channel is a topic of the mixed workload.
type channel struct {
	topic       string
	period      time.Duration
	size        int
	seq         int
	subscribers []*conn
}

func mixed(s *sim) {
	channels, topicsOf := s.newChannels()
	conns, start := s.connectAll(func(i int) login {
		l := login{clientID: fmt.Sprintf("desk-%04d", i), qos: s.cfg.qos()}
		for _, k := range topicsOf[i] {
			l.topics = append(l.topics, channels[k].topic)
		}
		return l
	})
	for i, ks := range topicsOf {
		for _, k := range ks {
			channels[k].subscribers = append(channels[k].subscribers, conns[i])
		}
	}
	remaining := s.cfg.Messages
	for _, ch := range channels {
		s.rng.Shuffle(len(ch.subscribers), func(i, j int) {
			ch.subscribers[i], ch.subscribers[j] = ch.subscribers[j], ch.subscribers[i]
		})
		var tick func()
		tick = func() {
			if remaining == 0 {
				return
			}
			ch.seq++
			body := appendRecord(nil, s.rng, ch.seq, s.now, ch.size)
			for _, c := range ch.subscribers {
				s.onBroker(copyLow, copyHigh, func() { c.deliver(ch.topic, s.cfg.qos(), body) })
			}
			if remaining--; remaining == 0 {
				s.closeAll(conns, s.now+s.quiet())
			}
			s.after(ch.period+s.between(0, ch.period/64), tick)
		}
		s.at(start+s.between(0, ch.period), tick)
	}
}

// newChannels draws topics, half as many as clients but at least four, with
// log-uniform rates and sizes, and for each client the topics that it wants.
func (s *sim) newChannels() (channels []*channel, topicsOf [][]int) {
	kinds := [...]string{"pos", "state", "alarm", "price"}
	sizes := [...]int{50, 75, 115, 175, 260, 400, 600, 900, 1350, 2000}
	slowdown := [...]time.Duration{10, 15, 23, 34, 51, 77, 115, 173, 250} // tenths
	n := max(4, s.cfg.Clients/2)
	for k := range n {
		channels = append(channels, &channel{
			topic:  fmt.Sprintf("fab/%d/%s/%d", s.rng.IntN(8), kinds[s.rng.IntN(len(kinds))], k),
			period: s.cfg.period() * slowdown[(k*5)%len(slowdown)] / 10,
			size:   sizes[(k*7+3)%len(sizes)],
		})
	}
	topicsOf = make([][]int, s.cfg.Clients)
	for i := range topicsOf {
		topicsOf[i] = s.rng.Perm(n)[:min(n, 4+s.rng.IntN(3))]
	}
	return channels, topicsOf
}
