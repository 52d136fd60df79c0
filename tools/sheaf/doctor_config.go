package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"

	"sheaf/engine"
	"sheaf/tunnel"
)

// checkConfig reads the configuration.
func (d *doctor) checkConfig() {
	cfg, err := loadConfig(d.path)
	if err != nil {
		// The error says what to do.
		d.fail("configuration", "", "%s", strings.TrimPrefix(err.Error(), engine.ErrConfig.Error()+": "))
		return
	}
	d.cfg = cfg
	way := "without a device"
	if cfg.TUN != nil {
		way = "with a device"
	}
	d.ok("configuration", "%s: %s, %s", d.path, count(uint64(len(cfg.Peers)), "peer"), way)
	for _, c := range cfg.Carrier {
		if c == tunnel.Plain.String() {
			d.warn("configuration", `leave carrier away, or write carrier = ["quic", "tls"], unless the link is inside another VPN`,
				`carrier = ["plain"]: nothing is encrypted and the peer is not authenticated`)
		}
	}
}

// maxSocketPath is the longest path of a unix socket, in bytes (unix(7)).
const maxSocketPath = 107

// control returns the path of the control socket, or "off".
func (d *doctor) control() string {
	if d.cfg == nil || d.cfg.Control == "" {
		return engine.DefaultControl
	}
	return d.cfg.Control
}

// checkControl asks by the control socket whether a gateway is running.
func (d *doctor) checkControl(ctx context.Context) {
	path := d.control()
	if path == "off" {
		d.unknown = true
		d.warn("control", `leave control away, or give it a path`, `control = "off": nobody can ask a running gateway, nor can this check`)
		return
	}
	if len(path) > maxSocketPath {
		d.fail("control", "set control to a shorter path", "%s is longer than the %d bytes that a socket's path may have", path, maxSocketPath)
		return
	}
	s, err := engine.NewClient(path).Status(ctx)
	switch {
	case err == nil:
		d.running = &s
		d.ok("control", "a gateway is running, for %s, and answers at %s", lasting(s.Uptime), path)
		return
	case errors.Is(err, os.ErrPermission):
		d.unknown = true
		d.warn("control", "try sudo", "%v", err)
		return
	case !errors.Is(err, engine.ErrNotRunning):
		d.unknown = true
		d.fail("control", "stop what answers there, or set control to another path", "%s is not answered by a gateway of this version: %v", path, err)
		return
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket == 0 {
		d.fail("control", "remove it, or set control to another path", "at %s is something else than a socket", path)
		return
	}
	folder := filepath.Dir(path)
	if err := writable(folder); err != nil {
		d.fail("control", "run as root, or set control to a path in a folder that exists and is yours", "the socket cannot be made in %s: %v", folder, err)
		return
	}
	d.ok("control", "no gateway is running; %s is free", path)
}

// checkKey reads the key.
func (d *doctor) checkKey() {
	if d.cfg == nil {
		return
	}
	path := d.cfg.Key
	key, err := tunnel.LoadKey(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.fail("key", "sheaf keygen "+path, "%s does not exist", path)
		return
	case errors.Is(err, tunnel.ErrPermissions):
		d.fail("key", "chmod 600 "+path+"; who could read it may have a copy, so a new key is better", "%s can be read by others than its owner", path)
		return
	case errors.Is(err, fs.ErrPermission):
		d.fail("key", "run as its owner, or as root", "%s cannot be read by this user", path)
		return
	case err != nil:
		d.fail("key", "move it away and make another with: sheaf keygen "+path, "%v", err)
		return
	}
	d.key = &key
	d.ok("key", "%s, fingerprint %v", path, key.Fingerprint())
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err == nil && info.Mode().Perm()&0o022 != 0 && info.Mode()&fs.ModeSticky == 0 {
		d.warn("key", "chmod go-w "+folder, "others may write to %s and put another key in its place", folder)
	}
	if d.isRunning() && d.running.Fingerprint != key.Fingerprint().String() {
		d.warn("key", "restart the gateway", "the gateway that is running has another one, %s", d.running.Fingerprint)
	}
	seen := map[tunnel.Fingerprint]string{key.Fingerprint(): ""}
	for _, p := range d.cfg.Peers {
		f, err := tunnel.ParseFingerprint(p.Fingerprint)
		if err != nil {
			continue // the configuration was refused
		}
		other, there := seen[f]
		switch {
		case there && other == "":
			d.fail("key", "each gateway has a key of its own: write what \"sheaf keygen\" printed at the other end", "[[peer]] %q: the fingerprint is this gateway's own", p.Name)
		case there:
			d.fail("key", "each gateway has a key of its own: write what \"sheaf keygen\" printed there", "[[peer]] %q and %q have the same fingerprint", other, p.Name)
		}
		seen[f] = p.Name
	}
}

// earliest is a year in which no clock can be that is right.
const earliest = 2026

// checkClock looks whether the clock was ever set.
func (d *doctor) checkClock() {
	now := d.host.now()
	if now.Year() < earliest {
		d.warn("clock", "set it, for example with: timedatectl set-ntp true", "it says %s; the tunnel does not mind, but logs and captures will", now.Format("2006-01-02"))
		return
	}
	d.ok("clock", "%s", now.UTC().Format("2006-01-02 15:04:05 MST"))
}

// writable tells whether files can be made in a folder, without making one.
func writable(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &fs.PathError{Op: "look at", Path: folder, Err: errors.New("not a folder")}
	}
	return accessible(folder)
}

// splitPort returns the port of an address for a message.
func splitPort(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return port
}
