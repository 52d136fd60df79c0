package record

import (
	"crypto/tls"
	"net/netip"

	nats "github.com/nats-io/nats-server/v2/server"
)

// mqttsPort is where brokers of MQTT take TLS.
const mqttsPort = 8883

// A security is how clients and broker of a workload speak TLS. The capture has the
// secrets of their connections.
type security struct {
	about        string
	lines        []string          // of mosquitto's configuration, for its listener of TLS
	configure    func(*tls.Config) // of each client; nil for nothing
	certificates bool              // of the clients
	loses        int               // of so many packets with data one is lost; 0: none
}

// over returns the workload over TLS.
func (w Workload) over(s security) Workload {
	w.security = &s
	if s.about != "" {
		w.About += ", " + s.about
	}
	return w
}

// secure starts the broker of a workload over TLS, and says how its clients speak TLS.
func (s *stage) secure() error {
	a, err := newAuthority()
	if err != nil {
		return err
	}
	if s.Protocol == "nats" {
		s.broker, err = startSecureNATS(a)
	} else {
		s.broker, err = startMosquitto(a, s.security.lines)
	}
	if err != nil {
		return err
	}
	s.besideTLS = &tls.Config{RootCAs: a.roots(), ServerName: brokerName}
	for i := range s.Clients {
		c := s.besideTLS.Clone()
		c.KeyLogWriter = logWriter{s.vault}
		if s.security.certificates {
			cert, err := a.issue(clientName(i))
			if err != nil {
				return err
			}
			c.Certificates = []tls.Certificate{cert}
		}
		if s.security.configure != nil {
			s.security.configure(c)
		}
		s.tls = append(s.tls, c)
	}
	return nil
}

// startSecureNATS starts a nats-server that asks for TLS behind its INFO.
func startSecureNATS(a *authority) (*broker, error) {
	cert, err := a.issue(brokerName)
	if err != nil {
		return nil, err
	}
	b, err := startNATSWith(&nats.Options{TLS: true, TLSTimeout: timeout.Seconds(), TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}})
	if err != nil {
		return nil, err
	}
	b.secure = b.address
	return b, nil
}

// forward has the broker's host take connections for the broker at its port, or where MQTT
// has another for TLS, at that.
func (s *stage) forward(port uint16) (netip.AddrPort, error) {
	switch {
	case s.security == nil:
		return s.net.forward(port, s.broker.address, nil)
	case s.Protocol == "mqtt":
		port = mqttsPort
	}
	return s.net.forward(port, s.broker.secure, nil)
}

// tls12 has a client speak TLS 1.2 with AES-128-GCM.
func tls12(c *tls.Config) {
	c.MaxVersion = tls.VersionTLS12
	c.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}
}
