package engine

import (
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"sheaf/engine/aggregate/seal"
	"sheaf/netstack"
)

// The metrics, all read from a Status when they are asked for, so that counting
// them costs the data path nothing.
var (
	metricUp       = metric("peer_up", "Whether the peer is connected and all its lanes are up.", "peer")
	metricLane     = metric("lane_up", "Whether an epoch runs on the lane, and is not one of many that do not last.", "peer", "lane")
	metricPackets  = metric("packets_total", "IP packets, by direction (sent, received).", "peer", "direction")
	metricBytes    = metric("bytes_total", "Bytes by direction and layer: ip before merging, frames after, wire with about what the carrier adds.", "peer", "direction", "layer")
	metricFrames   = metric("frames_total", "Frames, by direction.", "peer", "direction")
	metricRefused  = metric("refused_packets_total", "Packets from addresses that the peer may not send from.", "peer")
	metricEpochs   = metric("epochs_total", "Epochs begun.", "peer", "lane")
	metricDropped  = metric("dropped_packets_total", "Packets dropped because they waited too long.", "peer", "lane")
	metricVerbatim = metric("verbatim_packets_total", "Packets carried as they are.", "peer", "lane")
	metricContexts = metric("contexts_total", "Contexts announced.", "peer", "lane")
	metricWaits    = metric("wait_seconds", "How long packets waited for their frame. The sum is of all packets sent, the count is their number.", "peer", "lane")
	metricFlushes  = metric("flushes_total", "Frames by the reason that they were written for.", "peer", "lane", "reason")
	metricHits     = metric("similarity_hits_total", "Spans by the criterion that found them a template.", "peer", "lane", "criterion")
	metricMessages = metric("messages_total", "Messages sent, by protocol and kind.", "peer", "protocol", "message")
	metricFaults   = metric("device_faults", "What the device lacks: that it is up, addresses, routes.")
	metricLosses   = metric("device_lost_packets_total", "What the device and the gateway did not take from one another, by reason.", "reason")
	metricJoined   = metric("device_joined_packets_total", "Packets that the kernel took inside super-segments.")
	metricStack    = metric("stack_lost_packets_total", "What the userspace stack did not take (stray) or could not send (dropped), by reason.", "reason")
	metricOpen     = metric("connections", "Connections that are open, by end of the userspace stack (forward, terminate).", "end")
	metricOpened   = metric("connections_total", "Connections by end of the userspace stack and what became of them: opened, refused, failed.", "end", "outcome")
	metricSealed   = metric("tls_connections_total", "TLS connections of which records were sent: opened, or with a cipher suite that cannot be.", "peer", "lane", "outcome")
	metricRecords  = metric("tls_records_total", "Protected TLS records sent, by what became of them: opened, or why not.", "peer", "lane", "outcome")
	metricContent  = metric("tls_opened_bytes_total", "Bytes of content in the TLS records that were opened.", "peer", "lane")
	metricKeys     = metric("tls_secrets_total", "TLS connections whose secrets were found at this end; of these met, evicted; and lines of key logs that could not be read, bad.", "outcome")
	metricKeyLog   = metric("tls_key_log_up", "Whether a key log is there and can be read.", "path")
	metricStray    = metric("unroutable_packets_total", "Packets for which there is no peer.")

	metricTLSOpen   = metric("tls_server_connections", "Connections that are open with a TLS server that the gateway is itself.", "server")
	metricTLS       = metric("tls_server_handshakes_total", "Handshakes of a TLS server that the gateway is itself, by what became of them: full, resumed, or why they failed.", "server", "outcome")
	metricTLSUntil  = metric("tls_server_certificate_expiry_timestamp_seconds", "When the certificate of a TLS server that the gateway is itself expires.", "server")
	metricPortUp    = metric("port_up", "Whether a guest is at the port, and its NIC is ready.", "port")
	metricPortConn  = metric("port_connects_total", "Times that a guest came to the port.", "port")
	metricPortFrame = metric("port_frames_total", "Frames between guest and gateway, by direction (received, sent).", "port", "direction")
	metricPortPass  = metric("port_packets_total", "IP packets of the guest that went on (received), and to it (sent).", "port", "direction")
	metricPortLost  = metric("port_lost_total", "What went no further at the port, by reason.", "port", "reason")
	metricStreams   = metric("port_streams", "Streams of a guest without a NIC that are open.", "port")
	metricStream    = metric("port_streams_total", "Streams of a guest without a NIC, by who opened them: received from the guest, sent to it.", "port", "direction")
	metricPortFault = metric("port_faults", "Files of ports, and their directory, that are not in order.")
	metricSpoofed   = metric("guest_spoofed_packets_total", "Packets from elsewhere with an address of a guest.")
	metricTLSFault  = metric("tls_server_faults", "Whether files of a TLS server that the gateway is itself are not in order.", "server")
)

func metric(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("sheaf_"+name, help, labels, nil)
}

// A collector gives a gateway's Status as metrics.
type collector struct{ g *Gateway }

// Describe sends nothing: the metrics depend on the peers.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	count := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	state := func(d *prometheus.Desc, up bool, labels ...string) {
		v := 0.0
		if up {
			v = 1
		}
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	s := c.g.Status()
	count(metricStray, float64(s.Unroutable))
	for reason, n := range s.Losses.Reasons() {
		count(metricLosses, float64(n), reason)
	}
	count(metricJoined, float64(s.Joined))
	if s.Stack != nil {
		c.stack(count, out, s.Stack)
	}
	for i := range s.TLSServers {
		c.tlsServer(count, out, &s.TLSServers[i])
	}
	if s.Secrets != nil {
		c.secrets(count, state, s.Secrets)
	}
	if s.Guests != nil {
		c.guests(count, state, out, s.Guests)
	}
	out <- prometheus.MustNewConstMetric(metricFaults, prometheus.GaugeValue, float64(len(s.Faults)))
	for _, p := range s.Peers {
		state(metricUp, p.Up, p.Name)
		count(metricRefused, float64(p.Refused), p.Name)
		for direction, t := range map[string]Traffic{"sent": p.Sent, "received": p.Received} {
			count(metricPackets, float64(t.Packets), p.Name, direction)
			count(metricFrames, float64(t.Frames), p.Name, direction)
			count(metricBytes, float64(t.Bytes), p.Name, direction, "ip")
			count(metricBytes, float64(t.BytesFrames), p.Name, direction, "frames")
			count(metricBytes, float64(t.BytesWire), p.Name, direction, "wire")
		}
		messages := map[[2]string]uint64{}
		for _, l := range p.Lanes {
			state(metricLane, l.Up, p.Name, l.Class)
			count(metricEpochs, float64(l.Epochs), p.Name, l.Class)
			count(metricDropped, float64(l.Dropped), p.Name, l.Class)
			count(metricVerbatim, float64(l.Verbatim), p.Name, l.Class)
			count(metricContexts, float64(l.Contexts), p.Name, l.Class)
			out <- prometheus.MustNewConstSummary(metricWaits, l.Packets, l.Waited.Seconds(), nil, p.Name, l.Class)
			c.sealed(count, p.Name, &l)
			for reason, n := range l.Flushes {
				count(metricFlushes, float64(n), p.Name, l.Class, reason)
			}
			for criterion, n := range l.Hits {
				count(metricHits, float64(n), p.Name, l.Class, criterion)
			}
			for kind, n := range l.Messages {
				messages[[2]string{kind.Protocol, kind.Message}] += n
			}
		}
		for kind, n := range messages {
			count(metricMessages, float64(n), p.Name, kind[0], kind[1])
		}
	}
}

// sealed gives the counters of TLS of a lane.
func (collector) sealed(count func(d *prometheus.Desc, v float64, labels ...string), peer string, l *LaneStatus) {
	t := &l.TLS
	count(metricSealed, float64(t.Connections), peer, l.Class, "opened")
	refused := uint64(0)
	for _, n := range t.Suites {
		refused += n
	}
	count(metricSealed, float64(refused), peer, l.Class, seal.CarriedSuite.String())
	count(metricRecords, float64(t.Records), peer, l.Class, "opened")
	for why, n := range t.Carried {
		count(metricRecords, float64(n), peer, l.Class, why)
	}
	count(metricContent, float64(t.Bytes), peer, l.Class)
}

// secrets gives how it is with the secrets at this end.
func (collector) secrets(count func(d *prometheus.Desc, v float64, labels ...string), state func(d *prometheus.Desc, up bool, labels ...string), s *SecretsStatus) {
	count(metricKeys, float64(s.Connections), "found")
	count(metricKeys, float64(s.Asked), "met")
	count(metricKeys, float64(s.Evicted), "evicted")
	count(metricKeys, float64(s.Bad), "bad")
	for _, k := range s.KeyLogs {
		state(metricKeyLog, k.Fault == "", k.Path)
	}
}

// stack gives the counters of the userspace stack.
func (collector) stack(count func(d *prometheus.Desc, v float64, labels ...string), out chan<- prometheus.Metric, s *netstack.StackStats) {
	count(metricStack, float64(s.Stray), "stray")
	count(metricStack, float64(s.Dropped), "dropped")
	for end, e := range map[string]netstack.EndStats{"forward": s.Forward, "terminate": s.Terminal} {
		out <- prometheus.MustNewConstMetric(metricOpen, prometheus.GaugeValue, float64(e.Active), end)
		count(metricOpened, float64(e.Opened), end, "opened")
		count(metricOpened, float64(e.Refused), end, "refused")
		count(metricOpened, float64(e.Failed), end, "failed")
	}
}

// guests gives the counters of guests' ports.
func (collector) guests(count func(d *prometheus.Desc, v float64, labels ...string), state func(d *prometheus.Desc, up bool, labels ...string), out chan<- prometheus.Metric, s *GuestsStatus) {
	out <- prometheus.MustNewConstMetric(metricPortFault, prometheus.GaugeValue, float64(len(s.Faults)))
	count(metricSpoofed, float64(s.Spoofed))
	for i := range s.Ports {
		p := &s.Ports[i]
		state(metricPortUp, p.Link.Up, p.Name)
		count(metricPortConn, float64(p.Link.Connects), p.Name)
		count(metricPortFrame, float64(p.Link.Received), p.Name, "received")
		count(metricPortFrame, float64(p.Link.Sent), p.Name, "sent")
		count(metricPortPass, float64(p.Counters.Passed), p.Name, "received")
		count(metricPortPass, float64(p.Counters.Sent), p.Name, "sent")
		if v := p.Vsock; v != nil {
			out <- prometheus.MustNewConstMetric(metricStreams, prometheus.GaugeValue, float64(v.Streams), p.Name)
			count(metricStream, float64(v.Calls), p.Name, "received")
			count(metricStream, float64(v.Dials), p.Name, "sent")
		}
		for reason, n := range p.Losses() {
			count(metricPortLost, float64(n), p.Name, reason)
		}
	}
}

// tlsServer gives the counters of a TLS server, under the first of its addresses.
func (collector) tlsServer(count func(d *prometheus.Desc, v float64, labels ...string), out chan<- prometheus.Metric, s *TLSServerStatus) {
	server := s.Servers[0]
	gauge := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, server)
	}
	gauge(metricTLSOpen, float64(s.Stats.Active))
	gauge(metricTLSUntil, float64(s.Until.Unix()))
	fault := 0.0
	if s.Fault != "" {
		fault = 1
	}
	gauge(metricTLSFault, fault)
	count(metricTLS, float64(s.Stats.Opened-s.Stats.Resumed), server, "full")
	count(metricTLS, float64(s.Stats.Resumed), server, "resumed")
	for why, n := range s.Failed {
		count(metricTLS, float64(n), server, why)
	}
}

// listenMetrics opens the address on which Prometheus asks.
func (g *Gateway) listenMetrics(address string) (*http.Server, net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, nil, fmt.Errorf("metrics: %w", err)
	}
	reg := prometheus.NewRegistry()
	if err := reg.Register(collector{g}); err != nil {
		l.Close()
		return nil, nil, fmt.Errorf("metrics: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{}))
	return &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}, l, nil
}
