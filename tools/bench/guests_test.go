package main

import (
	"strings"
	"testing"
)

// TestGuests holds that each way carries frames both ways without allocating.
func TestGuests(t *testing.T) {
	all, err := measureGuests(options{short: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != len(guestWays) {
		t.Fatalf("%d ways", len(all))
	}
	for i := range all {
		g := &all[i]
		if g.Frames == 0 || g.Time[up].Min <= 0 || g.Time[down].Min <= 0 || g.Time[up].Median < g.Time[up].Min {
			t.Errorf("%+v", g)
		}
	}
	var b strings.Builder
	guestTable(all).write(&b)
	for _, want := range []string{"rings", "vhost-user", "stream", "stream / rings", "both ways, from 3"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if hard, _ := missedGuests(all); len(hard) > 0 {
		t.Error(hard)
	}
}

// TestMissedGuests holds which targets are missed, at each and past it.
func TestMissedGuests(t *testing.T) {
	rings := func(up, down, allocs float64) Guest {
		return Guest{Name: "rings", Time: [2]Spread{{Median: up}, {Median: down}}, Allocs: [2]float64{0, allocs}}
	}
	for _, test := range []struct {
		rings, stream Guest
		hard, soft    string
	}{
		{rings(1500, 1500, 0), rings(4500, 4500, 1), "", ""},
		{rings(1500, 1501, 0), rings(9000, 9000, 0), "", "1500 ns a frame up and 1501 down"},
		{rings(1501, 1500, 0), rings(9000, 9000, 0), "", "1501 ns a frame up and 1500 down"},
		{rings(100, 100, 0), rings(590, 9, 0), "", "3.0 times as many frames"},
		{rings(100, 100, 0), rings(591, 9, 0), "", ""},
		{rings(100, 100, targetAllocs), rings(900, 900, 0), "0.0010 objects a frame down", ""},
	} {
		hard, soft := missedGuests([]Guest{test.rings, test.stream})
		for _, v := range []struct {
			got  []string
			want string
		}{{hard, test.hard}, {soft, test.soft}} {
			if got := strings.Join(v.got, "; "); !strings.Contains(got, v.want) || (v.want == "") != (got == "") {
				t.Errorf("%q instead of %q", got, v.want)
			}
		}
	}
	if hard, soft := missedGuests(nil); len(hard)+len(soft) > 0 {
		t.Error(hard, soft)
	}
}
