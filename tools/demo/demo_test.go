package demo

import (
	"context"
	"testing"
	"time"
)

func TestDemo(t *testing.T) {
	n := 0
	f, err := Run(context.Background(), Config{
		Subscribers: 20, Publishers: 5, Interval: 100 * time.Millisecond, For: 2500 * time.Millisecond,
		Progress: func(Figures) { n++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	if f.Published < 50 || f.Delivered != f.Published*20 || f.Wrong != 0 {
		t.Errorf("figures %+v", f)
	}
	if f.Crossed == 0 || f.Crossed*4 > f.Plain {
		t.Errorf("%d bytes crossed for %d", f.Crossed, f.Plain)
	}
	if n == 0 {
		t.Error("no progress was told")
	}
}

func TestDemoEndsEarly(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	defer cancel()
	f, err := Run(ctx, Config{Subscribers: 3, Publishers: 2, Interval: 50 * time.Millisecond, For: time.Hour})
	if err != nil {
		t.Errorf("%v: %+v", err, f)
	}
}
