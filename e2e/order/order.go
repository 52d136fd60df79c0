// Package order has what a test asks of a virtual machine that it has booted, and what is
// answered: a line of JSON each way, over a serial port that the kernel does not write to.
//
//	test  -> guest   {"id":7,"do":"ping","with":{"to":"10.2.0.10","count":20}}
//	guest -> test    {"id":7,"result":{"sent":20,"got":20}}
//
// Orders run beside one another; each is answered when it is done. The guest's first line,
// with the id 0, says that it has booted. Times are in nanoseconds, by the guest's clock.
package order

import (
	"encoding/json"
	"net/netip"
	"time"
)

// A Line is one of either direction.
type Line struct {
	ID     int             `json:"id"`
	Do     string          `json:"do,omitempty"`
	With   json.RawMessage `json:"with,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  string          `json:"error,omitempty"`
}

// Booted is the result of the guest's first line.
type Booted struct {
	Uptime time.Duration     `json:"uptime"` // of the kernel
	NICs   map[string]string `json:"nics"`   // names of the network interfaces by MAC
}

// Net ("net") brings up the NIC with a MAC, which then is the only one with addresses.
type Net struct {
	MAC       string         `json:"mac"`
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	Routers   []netip.Addr   `json:"routers,omitempty"` // the default ones, each of a family
	DHCP      bool           `json:"dhcp,omitempty"`    // ask for an IPv4 address and a router
	RA        bool           `json:"ra,omitempty"`      // wait for an IPv6 address and a router
}

// Up is the result of Net.
type Up struct {
	Addresses []netip.Prefix `json:"addresses"`
	Routers   []netip.Addr   `json:"routers"`
	DNS       []netip.Addr   `json:"dns"`
	MTU       int            `json:"mtu"`
	Took      time.Duration  `json:"took"` // from the NIC's being up until it had addresses
}

// Client ("connect") connects an MQTT client and subscribes; without Topic to nothing.
type Client struct {
	Name   string         `json:"name"`
	Broker netip.AddrPort `json:"broker"`
	Vsock  uint32         `json:"vsock,omitempty"` // not at Broker, but at this port of the host
	Topic  string         `json:"topic,omitempty"`
	QoS    byte           `json:"qos"`
}

// A Name ("received", "disconnect") is that of a client.
type Name struct {
	Name string `json:"name"`
}

// Publish ("publish") has a client publish readings, and is answered when all are sent, and
// acknowledged where QoS says so.
type Publish struct {
	Name  string        `json:"name"`
	Topic string        `json:"topic"`
	QoS   byte          `json:"qos"`
	First int           `json:"first"` // sequence number
	Count int           `json:"count"`
	Every time.Duration `json:"every"`
}

// A Reading is the body of a message.
type Reading struct {
	Device      string  `json:"device"`
	Seq         int     `json:"seq"`
	Sent        int64   `json:"sent"` // by the clock of its guest
	Temperature float64 `json:"temperature"`
	State       string  `json:"state"`
}

// Received is the result of "received": what came since the client connected.
type Received struct {
	Topics map[string]Sequence `json:"topics"`
	Own    Quantiles           `json:"own"` // of the client's own messages, from publish to notification
	Lost   string              `json:"lost,omitempty"`
}

// A Sequence is what came of one topic.
type Sequence struct {
	Count int `json:"count"`
	First int `json:"first"` // sequence number
	Last  int `json:"last"`
	Twice int `json:"twice"` // not above the one before
	Gaps  int `json:"gaps"`  // left out
}

// Quantiles tell of a set of durations.
type Quantiles struct {
	N   int           `json:"n"`
	P50 time.Duration `json:"p50"`
	P99 time.Duration `json:"p99"`
	Max time.Duration `json:"max"`
}

// Ping ("ping") sends echo requests; with First only until one is answered.
type Ping struct {
	To    netip.Addr    `json:"to"`
	From  netip.Addr    `json:"from,omitzero"`
	Count int           `json:"count"`
	Every time.Duration `json:"every"`
	Wait  time.Duration `json:"wait"` // for the last answer
	First bool          `json:"first,omitempty"`
}

// Pinged is the result of Ping.
type Pinged struct {
	Sent  int           `json:"sent"`
	Got   int           `json:"got"`
	Took  Quantiles     `json:"took"`
	First time.Duration `json:"first"` // from the beginning to the first answer
}

// Flood ("flood") sends UDP datagrams as fast as the guest can.
type Flood struct {
	To    netip.AddrPort `json:"to"`
	Size  int            `json:"size"` // of the payload
	Count int            `json:"count"`
}

// Flooded is the result of Flood.
type Flooded struct {
	Sent int           `json:"sent"`
	Took time.Duration `json:"took"`
}

// Frames ("frames") are sent by a NIC as they are, from a packet socket.
type Frames struct {
	MAC     string   `json:"mac"`
	Frames  [][]byte `json:"frames,omitempty"`
	Rubbish int      `json:"rubbish,omitempty"` // so many frames of random length and bytes besides,
	To      string   `json:"to,omitempty"`      // every other one from the NIC's MAC to this one, and of a known type
	Seed    uint64   `json:"seed,omitempty"`
}

// Hear ("hear") returns the frames that come to a NIC in a time, a thousand at most.
type Hear struct {
	MAC string        `json:"mac"`
	For time.Duration `json:"for"`
}

// Dial ("dial") connects by TCP, and fails if that is not possible.
type Dial struct {
	To   netip.AddrPort `json:"to"`
	Wait time.Duration  `json:"wait"`
}

// Resolve ("resolve") asks a DNS server for a name's addresses.
type Resolve struct {
	Server netip.AddrPort `json:"server"`
	Name   string         `json:"name"`
}

// Run ("run") starts a program, whose output goes to the guest's console; it is answered
// when the program listens on a port of the guest's loopback, or after Wait with an error.
type Run struct {
	Argv []string      `json:"argv"`
	Port uint16        `json:"port"`
	Wait time.Duration `json:"wait"`
}

// Relay ("relay") listens at a port of the guest's vsock, and carries each connection to a
// TCP server, with the ends of both directions.
type Relay struct {
	Vsock uint32         `json:"vsock"`
	To    netip.AddrPort `json:"to"`
}
