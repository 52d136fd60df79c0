package main

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sheaf/engine"
	"sheaf/engine/keylog"
)

// checkTLS makes the checks that are about the [[tls]] tables.
func (d *doctor) checkTLS() {
	logs := 0
	for i := range d.cfg.TLS {
		t := &d.cfg.TLS[i]
		switch {
		case t.KeyLog != "":
			d.checkKeyLog(t)
			logs++
		case t.Certificate == "":
			d.checkTold(t)
		}
	}
	if logs > 0 && d.isRunning() && d.running.Secrets != nil {
		d.checkSecrets(d.running.Secrets)
	}
}

// checkKeyLog looks whether a key log can be read, and whether somebody writes it.
func (d *doctor) checkKeyLog(t *engine.TLS) {
	const manual = `; docs/tls.md, "Brokers", says how`
	file := keylog.Inspect(keylog.FileConfig{Path: t.KeyLog, Empty: t.Empty})
	known := d.runningKeyLog(t.KeyLog)
	if errors.Is(file.Fault, fs.ErrPermission) && known != nil && known.Fault == "" {
		file.Fault = nil // the gateway's user may read it
		file.OnDisk = known.OnDisk
	}
	switch {
	case errors.Is(file.Fault, fs.ErrNotExist):
		d.warn("key log", "start the server so that it writes there"+manual, "%s is not there: nothing has written it yet", t.KeyLog)
		return
	case errors.Is(file.Fault, keylog.ErrRefused):
		d.fail("key log", "", "%v", file.Fault) // says what to do
		return
	case errors.Is(file.Fault, fs.ErrPermission) && t.Empty:
		d.fail("key log", "run as root, or let the gateway's group write it: chmod 660 "+t.KeyLog, "%s may not be read and emptied by this user", t.KeyLog)
		return
	case errors.Is(file.Fault, fs.ErrPermission):
		d.fail("key log", "run as root, or let the gateway's group read it: chmod 640 "+t.KeyLog, "%s may not be read by this user", t.KeyLog)
		return
	case file.Fault != nil:
		d.fail("key log", "see whether its folder and file system are in order", "%v", file.Fault)
		return
	case d.isRunning() && known == nil:
		d.warn("key log", "restart the gateway", "the gateway that is running does not read %s", t.KeyLog)
		return
	case known != nil && known.Fault != "":
		d.fail("key log", `see the gateway's log; who may read what is in docs/tls.md, "Setting it up"`, "the gateway that is running does not use it: %s", known.Fault)
		return
	}
	if owner, err := ownerOf(t.KeyLog); err == nil && !d.isRunning() && os.Geteuid() == 0 && owner != 0 {
		d.warn("key log", "chown root "+t.KeyLog, "%s is another user's, and root cannot read it as examples/sheaf.service runs a gateway", t.KeyLog)
	}
	if file.OnDisk {
		d.warn("key log", "put it on a tmpfs, for example into a folder of its own under /run", "%s is on a disk, where secrets outlive their deletion", t.KeyLog)
	}
	grew := file.Grew
	if known != nil {
		grew = known.Grew
	}
	if grew.IsZero() {
		d.warn("key log", "see that the server has taken connections since, and writes there"+manual, "%s is empty", t.KeyLog)
		return
	}
	d.ok("key log", "%s grew last %s ago", t.KeyLog, lasting(max(0, d.host.now().Sub(grew).Round(time.Second))))
}

// ownerOf returns the user that a file belongs to.
func ownerOf(path string) (uint32, error) {
	var s unix.Stat_t
	err := unix.Stat(path, &s)
	return s.Uid, err
}

// runningKeyLog returns what the gateway that is running tells of a key log, nil if
// nothing.
func (d *doctor) runningKeyLog(path string) *engine.KeyLogStatus {
	if d.running == nil || d.running.Secrets == nil {
		return nil
	}
	for i := range d.running.Secrets.KeyLogs {
		if k := &d.running.Secrets.KeyLogs[i]; k.Path == path {
			return k
		}
	}
	return nil
}

// checkSecrets looks whether the secrets that the running gateway read are of connections
// that it carries.
func (d *doctor) checkSecrets(s *engine.SecretsStatus) {
	if s.Bad > 0 {
		d.warn("key log", "see that nothing but key logs is written there", "%s could not be read", count(s.Bad, "line"))
	}
	switch {
	case s.Connections > 0 && s.Asked == 0:
		d.warn("key log", "write in server what clients connect to, and see that their packets go through the tunnel",
			"it has secrets of %s, and packets of none were seen here", count(s.Connections, "connection"))
	case s.Connections > 0:
		d.ok("key log", "secrets of %s, and packets of %d of these were seen here", count(s.Connections, "connection"), s.Asked)
	}
}

// checkTold looks whether the other gateway can be the one that has the secrets.
func (d *doctor) checkTold(t *engine.TLS) {
	for _, text := range t.Servers {
		server, err := netip.ParseAddrPort(text)
		if err != nil {
			continue // the configuration was refused
		}
		if peer := d.peerOf(server.Addr().Unmap()); peer != "" {
			d.ok("TLS", "%s: %s tells the secrets, if its configuration names this server as well", text, peer)
			continue
		}
		d.warn("TLS", "name its keylog or certificate here, or see that a peer's allowed has it; it is right where the clients write a key log and the other gateway reads it",
			"%s is behind no peer, and nothing here has its secrets", text)
	}
}

// peerOf returns the peer that an address is behind, the one with the longest prefix; ""
// if none.
func (d *doctor) peerOf(a netip.Addr) (name string) {
	best := -1
	for i := range d.cfg.Peers {
		for _, p := range d.cfg.Peers[i].Allowed {
			if p.Contains(a) && p.Bits() > best {
				name, best = d.cfg.Peers[i].Name, p.Bits()
			}
		}
	}
	return name
}
