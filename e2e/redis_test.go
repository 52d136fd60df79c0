package e2e

import (
	"slices"
	"testing"
)

// redis starts redis-server.
func (s *site) redis() {
	s.lan.lab.t.Helper()
	s.redisWith(nil)
}

// redisWith is redis with variables in its environment, NAME=VALUE, and more arguments.
func (s *site) redisWith(env []string, args ...string) {
	l := s.lan.lab
	l.t.Helper()
	l.program("redis-server", "redis-server")
	all := append(slices.Clone(env), "redis-server", "--bind", s.host4.String(), "--port", "6379",
		"--protected-mode", "no", "--save", "", "--appendonly", "no", "--dir", l.dir)
	launch(l.t, "redis-server", s.lan.command("env", append(all, args...)...))
	s.listening(6379)
}

func TestRedis(t *testing.T) {
	l := newLab(t, 2)
	l.broker().redis()
	l.compare(
		trial{
			fanout:   fanout{protocol: "redis", topic: "plant:line-3:state"},
			delivery: tally{"redis", "message", "plant:line-3:state"},
			claim:    "Redis, fan-out to 50",
		},
		trial{
			fanout:   fanout{protocol: "redis", topic: "plant:line-3:orders", far: true},
			delivery: tally{"redis", "message", "plant:line-3:orders"},
			claim:    "Redis, the same from beside the clients",
		},
	)
}
