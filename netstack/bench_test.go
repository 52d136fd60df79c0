package netstack

import (
	"io"
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"
)

// Memory of connections that are open and silent, in the whole process: the two
// stacks, four sockets in Go's hands, and the goroutines of both splices. The
// server's goroutine is in it too.
func BenchmarkIdleConnections(b *testing.B) {
	const n = 2000
	for b.Loop() {
		clients, brokers, addr := benchStacks(b)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		conns := make([]net.Conn, n)
		for i := range conns {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				b.Fatal(err)
			}
			conns[i] = c
		}
		for brokers.Stats().Terminal.Active < n {
			time.Sleep(time.Millisecond)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapInuse-before.HeapInuse)/n, "heap-B/conn")
		b.ReportMetric(float64(after.StackInuse-before.StackInuse)/n, "stack-B/conn")
		for _, c := range conns {
			c.Close()
		}
		clients.Close()
		brokers.Close()
	}
}

// One megabyte from the client to the server and back.
func BenchmarkEcho(b *testing.B) {
	_, _, addr := benchStacks(b)
	c, err := net.Dial("tcp", addr)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	data, back := make([]byte, 1<<20), make([]byte, 1<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		go c.Write(data)
		if _, err := io.ReadFull(c, back); err != nil {
			b.Fatal(err)
		}
	}
}

func benchStacks(b *testing.B) (clients, brokers *Stack, addr string) {
	b.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { echo(c.(*net.TCPConn)); c.Close() }()
		}
	}()
	if clients, err = NewStack(StackConfig{Addresses: prefixes("10.99.0.1/24")}); err != nil {
		b.Fatal(err)
	}
	if brokers, err = NewStack(StackConfig{Addresses: prefixes("10.99.0.2/24")}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { clients.Close(); brokers.Close() })
	go pump(clients, brokers)
	go pump(brokers, clients)
	if _, err := brokers.Terminate(TerminateConfig{
		Prefixes: prefixes("10.2.0.0/24"),
		Map:      func(netip.AddrPort) netip.AddrPort { return l.Addr().(*net.TCPAddr).AddrPort() },
	}); err != nil {
		b.Fatal(err)
	}
	ready := make(chan error, 1)
	f, err := clients.Forward(b.Context(), ForwardConfig{
		From: "tcp:127.0.0.1:0", To: netip.AddrPortFrom(server4, 1883), Changed: func(err error) { ready <- err },
	})
	if err == nil {
		err = <-ready
	}
	if err != nil {
		b.Fatal(err)
	}
	return clients, brokers, f.Addr().String()
}

// What it costs to find out that packets may go to the kernel together.
func BenchmarkSplittable(b *testing.B) {
	packets := segments(40, 1448, nil)
	for b.Loop() {
		if splittable(packets) != 40 {
			b.Fatal("not splittable")
		}
	}
}
