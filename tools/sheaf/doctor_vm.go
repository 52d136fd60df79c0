package main

import (
	"strings"

	"sheaf/engine"
)

// checkGuests makes the checks that are about [vm]: its ports, and the guests at them.
func (d *doctor) checkGuests() {
	if d.cfg.VM == nil {
		return
	}
	ports, faults := engine.InspectPorts(d.cfg)
	for _, f := range faults {
		about := "guests"
		switch {
		case f.Port == "":
			d.fail(about, f.Mend, "directory of [vm]: %v", f.Err)
		case d.isRunning(): // it holds the sockets, and may be another user
			d.warn(about, f.Mend, "port %q: %v", f.Port, f.Err)
		default:
			d.fail(about, f.Mend, "port %q: %v", f.Port, f.Err)
		}
	}
	if len(ports) == 0 && len(faults) == 0 {
		d.warn("guests", `write a [[vm.port]], or use "sheaf port add"`, "[vm] has no port")
	}
	if !d.isRunning() {
		if len(faults) == 0 && len(ports) > 0 {
			d.ok("guests", "the sockets of %s can be made", count(uint64(len(ports)), "port"))
		}
		return
	}
	if d.running.Guests == nil {
		d.warn("guests", "restart the gateway", "the gateway that is running has no [vm]")
		return
	}
	for _, fault := range d.running.Guests.Faults {
		d.fail("guests", "correct it; the gateway looks again by itself", "%s", fault)
	}
	there := map[string]bool{}
	for i := range d.running.Guests.Ports {
		there[d.running.Guests.Ports[i].Name] = true
		d.checkGuest(&d.running.Guests.Ports[i])
	}
	for i := range ports {
		if !there[ports[i].Name] {
			d.warn("guests", `reload the gateway, or use "sheaf port add"`, "the gateway that is running does not have port %q", ports[i].Name)
		}
	}
}

// checkGuest looks at a port of the running gateway.
func (d *doctor) checkGuest(p *engine.PortStatus) {
	const manual = `docs/vm.md has the hypervisor's half`
	c := &p.Counters
	switch {
	case p.Link.Fault != "":
		d.fail("guests", "correct the hypervisor's line for it; "+manual, "%s: its guest was given up: %s", p.Name, p.Link.Fault)
		return
	case !p.Link.Up && p.Link.Connects == 0 && p.Dial:
		d.warn("guests", "start its hypervisor, and see that it listens there; "+manual, "%s: nobody answers at %s", p.Name, p.At)
		return
	case !p.Link.Up && p.Link.Connects == 0:
		d.warn("guests", "start its hypervisor with this socket; "+manual, "%s: nobody has connected to %s", p.Name, p.At)
		return
	case !p.Link.Up:
		d.warn("guests", "start the guest, if it should run", "%s: its guest has gone", p.Name)
		return
	case p.Kind != engine.KindVsock && c.Received == 0:
		d.warn("guests", "see that the guest's NIC is set up; the gateway answers its DHCP", "%s: its guest is there, and has sent nothing", p.Name)
		return
	}
	if n := p.Spoofed(); n > 0 {
		d.warn("guests", "give the guest the addresses that the gateway leases it, or name its own under address and mac of the port; it may also mean ill",
			"%s: %s refused: sent from addresses that are not its own", p.Name, count(n, "packet"))
		return
	}
	d.ok("guests", "%s is up, %s", p.Name, strings.TrimSuffix("with "+addresses(p.Addresses), "with "))
}
