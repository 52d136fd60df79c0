package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sheaf/engine/aggregate"
	"sheaf/parsers"
	"sheaf/parsers/builtin"
	"sheaf/tools/replay"
)

// carrierOverhead is what a carrier packet costs beyond its payload, in bytes,
// where nothing else is said: a frame on a stream of quic-go, over IPv4, was
// measured to take 58 to 62 bytes over its own, UDP and IP headers included.
const carrierOverhead = 60

// The most that the options take.
const (
	maxWait     = time.Hour
	maxOverhead = 1 << 16
	maxLevel    = 22
)

// replayOptions are the options of `sheaf replay`, as given.
type replayOptions struct {
	json                   bool
	compare                bool
	out                    string
	events                 int
	window, quiet, ackWait time.Duration
	overhead               int
	broker                 string
	protocols              []string
	similarity             []string
	compress               string
	keyLogs                []string
	guests                 []string
}

func newReplay() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay FILE...",
		Short: "Run captures through two gateways in memory: what it would save",
		Long: `Replay runs captures through two gateways in memory, compares every packet that
comes out with the one that went in, byte for byte, and shows what would have
crossed the link. It needs no root and opens no socket.

A FILE is a pcap or pcapng capture, plain, gzipped or zstd; - is standard input. Each
file gets gateways of its own, which know nothing at its start.

A frame goes at once and takes one carrier packet for each 1350 bytes begun. "On
the link" is frames and what carrier packets cost beyond them, --carrier-overhead;
its default is what QUIC over IPv4 was measured to cost, 58 to 62 bytes. "A
message" divides by the messages about an event, or with content where no event can
be told: not by acknowledgements, pings and the like, though their bytes count.

TLS is opened where the secrets of its connections are known, from their ClientHello
on: those that a pcapng capture brings in Decryption Secrets Blocks, and those in a
key log (SSLKEYLOGFILE) that --keylog names.

What a capture of all interfaces has more than once counts once.

--guests has a table of the virtual machines behind a gateway, by name: how much of
each went in and crossed the link, and shared frames with others. The bytes of a
frame are shared out among its packets by their sizes.

--compare shows what the same packets would take at the same moments: plain,
with header compression alone (a model after ROHC, and kind to it), and in one
zstd stream a direction, flushed with each frame.

Exit codes: 0, every packet that could be read came out identical, also from a
damaged capture; 1, one did not; 2, the command line or a file could not be used.`,
		Example: `  sheaf replay monday.pcap.gz
  sheaf replay --window 20ms --ack-wait 100ms --compare monday.pcap
  tcpdump -i eth1 -w - tcp port 1884 | sheaf replay --protocol mqtt@1884 -
  sheaf replay --keylog /run/keys/broker monday.pcap
  sheaf replay --json *.pcap | jq '.bytes_in / .bytes_wire'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, errors.New("no capture given: expected FILE..., or - for standard input"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := newReplayRun(&o, args)
			if err != nil {
				return usage(cmd, err)
			}
			r.stdin, r.stdout, r.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return r.run(args)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVar(&o.json, "json", false, "print one JSON object a file, each on a line")
	f.BoolVar(&o.compare, "compare", false, "compare with header compression and zstd streams; takes longer")
	f.StringVar(&o.out, "out", "", "write the rebuilt packets to `FILE` as pcap, at the times they left; gzipped if it ends in .gz")
	f.IntVar(&o.events, "events", 20, "rows of events in the table")
	f.DurationVar(&o.window, "window", 5*time.Millisecond, "how long a message may wait for others like it; 0: not at all")
	f.DurationVar(&o.quiet, "quiet", time.Millisecond, "a burst ends when nothing came for so long; 0: at once")
	f.DurationVar(&o.ackWait, "ack-wait", 25*time.Millisecond, "how long an acknowledgement may wait to ride along; 0: not at all")
	f.IntVar(&o.overhead, "carrier-overhead", carrierOverhead, "`BYTES` that a carrier packet costs beyond its payload, headers included")
	f.StringVar(&o.broker, "broker", "", "which end is the broker, `ADDR[:PORT]` (default: by protocol and port)")
	f.StringArrayVar(&o.protocols, "protocol", nil, "a port's protocol, `NAME@PORT`, such as mqtt@1884; opaque@PORT leaves its messages alone; can be given again")
	f.StringArrayVar(&o.keyLogs, "keylog", nil, "a `FILE` with secrets of the captures' TLS connections, in NSS's format; can be given again")
	f.StringArrayVar(&o.guests, "guests", nil, "name the guests of this gateway's configuration `FILE`, or of what \"sheaf port list --json\" printed; can be given again")
	f.StringSliceVar(&o.similarity, "similarity", nil, "what makes messages comparable: `LIST` of event, name, length, content; or none (default: all)")
	f.StringVar(&o.compress, "compress", "3", "zstd `LEVEL` for what is left, 1 to 22; or off")
	return cmd
}

// config checks the options and makes them a configuration.
func (o *replayOptions) config() (replay.Config, error) {
	cfg := replay.Config{Overhead: o.overhead, Compare: o.compare}
	var err error
	if cfg.Lane, err = o.lane(); err != nil {
		return cfg, err
	}
	if o.overhead < 0 || o.overhead > maxOverhead {
		return cfg, fmt.Errorf("--carrier-overhead %d: expected 0 to %d bytes", o.overhead, maxOverhead)
	}
	if o.events < 0 {
		return cfg, fmt.Errorf("--events %d: expected 0 or more rows", o.events)
	}
	if o.broker != "" {
		if cfg.Broker, err = replay.ParseEndpoint(o.broker); err != nil {
			return cfg, fmt.Errorf("--broker: %w", err)
		}
	}
	return cfg, nil
}

// lane checks the options of a lane.
func (o *replayOptions) lane() (aggregate.Config, error) {
	cfg := aggregate.Config{Registry: builtin.Registry()}
	for _, d := range [...]struct {
		flag  string
		value time.Duration
		field *time.Duration
	}{
		{"window", o.window, &cfg.Window},
		{"quiet", o.quiet, &cfg.Quiet},
		{"ack-wait", o.ackWait, &cfg.AckWait},
	} {
		if d.value < 0 || d.value > maxWait {
			return cfg, fmt.Errorf("--%s %v: expected 0 to %v", d.flag, d.value, maxWait)
		}
		*d.field = orOff(d.value)
	}
	for _, s := range o.protocols {
		b, err := parsers.ParseBinding(s)
		if err == nil {
			err = cfg.Registry.Bind(b)
		}
		if err != nil {
			return cfg, fmt.Errorf("--protocol: %w", err)
		}
	}
	var err error
	if cfg.Similarity, err = parseSimilarity(o.similarity); err != nil {
		return cfg, err
	}
	cfg.Compression, err = parseLevel(o.compress)
	return cfg, err
}

// orOff turns "none", which is 0 here, into what it is in an aggregate.Config.
func orOff(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

func parseSimilarity(list []string) (aggregate.Similarity, error) {
	criteria := map[string]aggregate.Similarity{
		"event": aggregate.ByEvent, "name": aggregate.ByName,
		"length": aggregate.ByLength, "content": aggregate.ByContent,
		"none": aggregate.ByNothing,
	}
	var s aggregate.Similarity
	for _, word := range list {
		c, ok := criteria[strings.TrimSpace(word)]
		if !ok {
			return 0, fmt.Errorf("--similarity %q: expected a list of event, name, length and content, or none", word)
		}
		s |= c
	}
	if s&aggregate.ByNothing != 0 && s != aggregate.ByNothing {
		return 0, errors.New("--similarity: none goes with nothing else")
	}
	return s, nil
}

func parseLevel(s string) (int, error) {
	if s == "off" {
		return -1, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxLevel {
		return 0, fmt.Errorf("--compress %q: expected a zstd level from 1 to %d, or off", s, maxLevel)
	}
	return n, nil
}
