package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"sheaf/engine/aggregate"
	"sheaf/parsers/builtin"
	"sheaf/pcap"
	"sheaf/tools/replay"
)

func main() {
	w := flag.Duration("window", 5*time.Millisecond, "")
	q := flag.Duration("quiet", time.Millisecond, "")
	msgs := flag.Float64("n", 0, "")
	flag.Parse()
	for _, name := range flag.Args() {
		f, err := os.Open(name)
		if err != nil {
			panic(err)
		}
		in, err := pcap.NewReader(f)
		if err != nil {
			fmt.Println(name, err)
			continue
		}
		r, err := replay.New(replay.Config{Overhead: 45, Lane: aggregate.Config{Window: *w, Quiet: *q, Registry: builtin.Registry()}})
		if err != nil {
			panic(err)
		}
		rec, skip, err := r.Run(in)
		t := r.Total()
		fmt.Printf("%s: %d-%d %+v err=%v enc=%v dec=%v %.200s\n", name, rec, skip, t, err, r.Encode/time.Duration(max(1, t.Packets)), r.Decode/time.Duration(max(1, t.Packets)), r.Worst)
		if t.Mismatched > 0 || t.Rebuilt != rec-skip || err != nil {
			fmt.Println("BAD", name)
		}
		if *msgs > 0 {
			fmt.Printf("PER MESSAGE %.2f\n", float64(t.BytesWire)/(*msgs))
			for d := range 2 {
				s := r.Stats(replay.Direction(d))
				fmt.Printf(" dir %d: frames %d flush %v in %v\n   out/msg:", d, s.Frames, s.Flushes, s.In)
				for p := range aggregate.NumParts {
					fmt.Printf(" %v %.3f", p, s.Out[p]/(*msgs))
				}
				fmt.Printf(" carrier %.3f; hits %v verb %d\n", float64(r.Way(replay.Direction(d)).CarrierPackets)*45/(*msgs), s.Hits, s.Verbatim)
			}
		}
	}
}
