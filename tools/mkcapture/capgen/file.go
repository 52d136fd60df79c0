package capgen

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
)

// SnapLength is what the header of every file says.
const SnapLength = 262144

// A File is a capture and what to make it from.
type File struct {
	Name     string // gzipped when it ends in .gz
	Workload Workload
	Config   Config
	Nanos    bool // times in nanoseconds instead of microseconds
}

// Standard returns the captures that lie in testdata. Files above 100 kB are
// gzipped.
func Standard() []File {
	return []File{
		{Name: "fanout-100.pcap.gz", Workload: Fanout, Config: Config{Clients: 100, Messages: 15, Seed: 1}},
		{Name: "fanout-20-qos1.pcap.gz", Workload: Fanout, Config: Config{Clients: 20, Messages: 40, QoS: 1, Seed: 2}},
		{Name: "fanout-10-ipv6.pcap.gz", Workload: Fanout, Config: Config{Clients: 10, Messages: 40, IPv6: true, Seed: 3}},
		{Name: "fanout-40-4hosts.pcap.gz", Workload: Fanout, Config: Config{Clients: 40, Hosts: 4, Messages: 15, Seed: 4}},
		{Name: "fanout-20-qos1-rtt40.pcap.gz", Workload: Fanout, Config: Config{Clients: 20, Messages: 20, QoS: 1, RTT: 40 * time.Millisecond, Seed: 5}},
		{Name: "fanoutskew-20-qos1.pcap.gz", Workload: FanoutSkew, Config: Config{Clients: 20, Messages: 40, Seed: 6}},
		{Name: "telemetry-40.pcap.gz", Workload: Telemetry, Config: Config{Clients: 40, Messages: 8, Seed: 7}},
		{Name: "control-50.pcap.gz", Workload: Control, Config: Config{Clients: 50, Messages: 10, Seed: 8}, Nanos: true},
		{Name: "mixed-20.pcap.gz", Workload: Mixed, Config: Config{Clients: 20, Messages: 200, Seed: 9}},
		{Name: "telemetry-40-ws.pcap.gz", Workload: Telemetry, Config: Config{Clients: 40, Messages: 8, Seed: 7, WebSocket: true}},
		{Name: "fanout-20-qos1-ws.pcap.gz", Workload: Fanout, Config: Config{Clients: 20, Messages: 40, QoS: 1, Seed: 2, WebSocket: true}},
		{Name: "odd.pcap", Workload: Odd, Config: Config{Seed: 10}},
	}
}

// Write writes the capture, gzipped when its name says so, and returns how many
// packets it has.
func (f *File) Write(w io.Writer) (packets int, err error) {
	if !strings.HasSuffix(f.Name, ".gz") {
		return f.WritePcap(w)
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return 0, err
	}
	if packets, err = f.WritePcap(z); err != nil {
		return packets, err
	}
	return packets, z.Close()
}

// WritePcap writes the capture as a pcap file of raw IP packets, whatever its
// name, and returns how many packets it has.
func (f *File) WritePcap(w io.Writer) (packets int, err error) {
	b := bufio.NewWriterSize(w, 1<<16)
	p := pcapgo.NewWriter(b)
	if f.Nanos {
		p = pcapgo.NewWriterNanos(b)
	}
	if err := p.WriteFileHeader(SnapLength, layers.LinkTypeRaw); err != nil {
		return 0, fmt.Errorf("capgen: %s: writing the file header: %w", f.Name, err)
	}
	err = Generate(f.Workload, f.Config, func(t time.Duration, packet []byte) error {
		info := gopacket.CaptureInfo{Timestamp: Epoch.Add(t), CaptureLength: len(packet), Length: len(packet)}
		if err := p.WritePacket(info, packet); err != nil {
			return fmt.Errorf("capgen: %s: writing packet %d: %w", f.Name, packets+1, err)
		}
		packets++
		return nil
	})
	if err != nil {
		return packets, err
	}
	if err := b.Flush(); err != nil {
		return packets, fmt.Errorf("capgen: %s: %w", f.Name, err)
	}
	return packets, nil
}
