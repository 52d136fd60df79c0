package capgen

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Workload names one kind of traffic.
type Workload string

const (
	// Fanout publishes one topic to every client; all copies are identical but
	// for the packet identifier with QoS 1.
	Fanout Workload = "fanout"
	// FanoutSkew is Fanout in the middle of its life, without handshakes: each
	// client has had a different number of messages, so packet identifiers differ.
	FanoutSkew Workload = "fanoutskew"
	// Telemetry has every client publish a reading of its own at its own phase.
	Telemetry Workload = "telemetry"
	// Control has every client publish an identical status, and get an identical
	// command in a burst, each under a topic of its own.
	Control Workload = "control"
	// Mixed has topics of many rates and body sizes (50 to 2000 bytes), with
	// several subscribers each.
	Mixed Workload = "mixed"
	// Odd is one packet or a few of everything that is legal but rare, broken, or
	// not pub-sub. It takes only the seed.
	Odd Workload = "odd"
	// Flows is a plain round robin over very many flows; see NewFlows.
	Flows Workload = "flows"
)

// Epoch is the wall-clock time of the start of every capture.
var Epoch = time.Unix(1790000000, 0).UTC()

// Limits of a Config.
const (
	MaxClients  = 50_000
	MaxMessages = 1_000_000_000
	MaxFlows    = 1 << 24
)

const maxPerHost = 1 << 15 // ports from 32768 on

// Config says how much of a workload to make. The zero value of a field stands
// for the default of the workload.
type Config struct {
	Clients  int           // client connections; for Flows the flows
	Hosts    int           // client hosts they are spread over; default one each
	Messages int           // per publisher; for Mixed over all topics, for Flows the rounds
	Rate     float64       // messages a second per publisher; for Mixed of the fastest topic
	QoS      int           // 1, or -1 for QoS 0
	RTT      time.Duration // between clients and broker; default about 10 us
	Seed     uint64        // of all randomness
	IPv6     bool

	// WebSocket has MQTT over WebSocket, on port 9001. The odd and flows workloads
	// do not have it.
	WebSocket bool
}

// spec is what Generate knows of a workload.
type spec struct {
	about    string
	defaults Config
	run      func(cfg Config, emit emitFunc) error
}

// emitFunc gets a packet; it is borrowed until the call returns.
type emitFunc func(t time.Duration, packet []byte) error

var specs = map[Workload]spec{
	Fanout:     {"one topic to every client, 20 messages a second", Config{Clients: 100, Messages: 15, Rate: 20, QoS: -1}, simulated(fanout)},
	FanoutSkew: {"the same in mid-life, packet identifiers differ per client", Config{Clients: 20, Messages: 40, Rate: 20, QoS: 1}, simulated(fanoutSkew)},
	Telemetry:  {"every client publishes a reading every 2 seconds", Config{Clients: 40, Messages: 10, Rate: 0.5, QoS: 1}, simulated(telemetry)},
	Control:    {"a status from and a command to every client each second", Config{Clients: 50, Messages: 10, Rate: 1, QoS: -1}, simulated(control)},
	Mixed:      {"topics of many rates and sizes, several subscribers each", Config{Clients: 20, Messages: 200, Rate: 5, QoS: -1}, simulated(mixed)},
	Odd:        {"what is rare, broken or not pub-sub", Config{Clients: 1, Messages: 1, Rate: 1, QoS: -1}, odd},
	Flows:      {"round robin over very many flows from the middle of their life", Config{Clients: 1000, Messages: 10, Rate: 1, QoS: -1}, runFlows},
}

// Workloads returns the workloads by name, in alphabetical order.
func Workloads() []Workload {
	var names []Workload
	for w := range specs {
		names = append(names, w)
	}
	slices.Sort(names)
	return names
}

// About says in a line what a workload is; empty for an unknown one.
func (w Workload) About() string { return specs[w].about }

// Generate makes the packets of a workload, in order of time since Epoch. It
// ends with the first error that emit returns. The packet is borrowed until emit
// returns.
func Generate(w Workload, cfg Config, emit func(t time.Duration, packet []byte) error) error {
	sp, cfg, err := prepare(w, cfg)
	if err != nil {
		return err
	}
	return sp.run(cfg, emit)
}

func prepare(w Workload, cfg Config) (spec, Config, error) {
	sp, ok := specs[w]
	if !ok {
		return spec{}, cfg, fmt.Errorf("capgen: unknown workload %q: want one of %s", w, workloadList())
	}
	def := sp.defaults
	if cfg.Clients == 0 {
		cfg.Clients = def.Clients
	}
	if cfg.Hosts == 0 {
		cfg.Hosts = cfg.Clients
	}
	if cfg.Messages == 0 {
		cfg.Messages = def.Messages
	}
	if cfg.Rate == 0 {
		cfg.Rate = def.Rate
	}
	if cfg.QoS == 0 {
		cfg.QoS = def.QoS
	}
	maxClients := MaxClients
	if w == Flows {
		maxClients = MaxFlows
	}
	switch {
	case cfg.Clients < 1 || cfg.Clients > maxClients:
		return sp, cfg, fmt.Errorf("capgen: %s: %d clients: want 1 to %d", w, cfg.Clients, maxClients)
	case cfg.Hosts < 1 || cfg.Hosts > cfg.Clients:
		return sp, cfg, fmt.Errorf("capgen: %s: %d client hosts: want 1 to the number of clients, %d", w, cfg.Hosts, cfg.Clients)
	case w != Flows && cfg.Clients > maxPerHost*cfg.Hosts:
		return sp, cfg, fmt.Errorf("capgen: %s: %d clients on %d hosts: want at most %d on each", w, cfg.Clients, cfg.Hosts, maxPerHost)
	case cfg.Messages < 1 || cfg.Messages > MaxMessages:
		return sp, cfg, fmt.Errorf("capgen: %s: %d messages: want 1 to %d", w, cfg.Messages, MaxMessages)
	case !(cfg.Rate >= 0.001 && cfg.Rate <= 1000):
		return sp, cfg, fmt.Errorf("capgen: %s: rate %v: want 0.001 to 1000 messages a second", w, cfg.Rate)
	case cfg.QoS != 1 && cfg.QoS != -1:
		return sp, cfg, fmt.Errorf("capgen: %s: QoS %d: want 1, or -1 for QoS 0", w, cfg.QoS)
	case cfg.WebSocket && (w == Odd || w == Flows):
		return sp, cfg, fmt.Errorf("capgen: %s: there is none over WebSocket", w)
	case cfg.RTT < 0 || cfg.RTT > 10*time.Second:
		return sp, cfg, fmt.Errorf("capgen: %s: round-trip time %v: want 0 to 10s", w, cfg.RTT)
	}
	return sp, cfg, nil
}

func workloadList() string {
	var names []string
	for _, w := range Workloads() {
		names = append(names, string(w))
	}
	return strings.Join(names, ", ")
}

// qos is the level that goes into messages.
func (c *Config) qos() byte {
	if c.QoS > 0 {
		return 1
	}
	return 0
}

// period is the time between two messages of one publisher.
func (c *Config) period() time.Duration {
	return time.Duration(float64(time.Second) / c.Rate)
}
