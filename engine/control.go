package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"
)

// DefaultControl is the path of the control socket where the configuration
// names none.
const DefaultControl = "/run/sheaf.sock"

// ErrControl tells that the control socket cannot be opened.
var ErrControl = errors.New("control socket")

// The control socket speaks HTTP, to its owner only: GET /status gives a Status,
// GET /routes the Routes; PUT and DELETE /routes take a Route; GET /ports gives the guests'
// ports, PUT /ports takes a VMPort and DELETE /ports one of which only the name counts.

// listenControl opens the control socket. A socket left behind by a gateway
// that is gone is removed; one that answers is not.
func listenControl(path string) (net.Listener, error) {
	if c, err := net.DialTimeout("unix", path, time.Second); err == nil {
		c.Close()
		return nil, fmt.Errorf("%w %s: another gateway is running; stop it, or set control to another path", ErrControl, path)
	}
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&os.ModeSocket == 0 {
			return nil, fmt.Errorf("%w %s: there is something else at that path", ErrControl, path)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrControl, err)
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrControl, err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("%w: %w", ErrControl, err)
	}
	return l, nil
}

func (g *Gateway) controlHandler() http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { answer(w, g.Status()) })
	mux.HandleFunc("GET /routes", func(w http.ResponseWriter, _ *http.Request) { answer(w, g.inspectedRoutes()) })
	mux.HandleFunc("PUT /routes", change(g.AddRoute))
	mux.HandleFunc("DELETE /routes", change(g.DelRoute))
	mux.HandleFunc("GET /ports", func(w http.ResponseWriter, _ *http.Request) {
		ports, err := g.Ports()
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer(w, ports)
	})
	mux.HandleFunc("PUT /ports", change(g.AddPort))
	mux.HandleFunc("DELETE /ports", change(func(p VMPort) error { return g.DelPort(p.Name) }))
	return mux
}

// change returns what takes a request to do something with a thing, whose body is that.
func change[T any](do func(T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var thing T
		dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<12))
		dec.DisallowUnknownFields()
		err := dec.Decode(&thing)
		if err == nil {
			err = do(thing)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	}
}

// A Client asks a running gateway through its control socket. A request takes 10 s at
// most.
type Client struct {
	path string
	http http.Client
}

// ErrNotRunning tells that no gateway answers at a control socket.
var ErrNotRunning = errors.New("no gateway is running")

// NewClient returns a Client for the socket at path.
func NewClient(path string) *Client {
	return &Client{path: path, http: http.Client{
		Timeout: 10 * time.Second,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}},
	}}
}

// Status asks for the gateway's status.
func (c *Client) Status(ctx context.Context) (s Status, err error) {
	return s, c.do(ctx, http.MethodGet, "/status", nil, &s)
}

// Routes asks for the gateway's routes.
func (c *Client) Routes(ctx context.Context) (r []Route, err error) {
	return r, c.do(ctx, http.MethodGet, "/routes", nil, &r)
}

// AddRoute has a prefix routed to a peer, until the gateway ends or is told to reload.
func (c *Client) AddRoute(ctx context.Context, r Route) error {
	return c.do(ctx, http.MethodPut, "/routes", r, nil)
}

// DelRoute has a prefix routed to no peer any more.
func (c *Client) DelRoute(ctx context.Context, r Route) error {
	return c.do(ctx, http.MethodDelete, "/routes", r, nil)
}

// Ports asks for the guests' ports.
func (c *Client) Ports(ctx context.Context) (p []PortStatus, err error) {
	return p, c.do(ctx, http.MethodGet, "/ports", nil, &p)
}

// AddPort has a guest's port plugged in, until the gateway ends or is told to reload.
func (c *Client) AddPort(ctx context.Context, p VMPort) error {
	return c.do(ctx, http.MethodPut, "/ports", p, nil)
}

// DelPort has a guest's port unplugged.
func (c *Client) DelPort(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, "/ports", VMPort{Name: name}, nil)
}

func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://gateway"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if errors.Is(err, os.ErrPermission) {
			return fmt.Errorf("%w %s: only the user that runs the gateway may use it: %w", ErrControl, c.path, os.ErrPermission)
		}
		return fmt.Errorf("%w at %s (%v)", ErrNotRunning, c.path, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(firstLine(resp.Body))
	}
	if out == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(out)
}

func firstLine(r io.Reader) string {
	s := bufio.NewScanner(io.LimitReader(r, 1<<12))
	s.Scan()
	return s.Text()
}
