package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// A PortFault is what is wrong with a guest's port, or with the directory of ports, before
// a gateway runs.
type PortFault struct {
	Port      string // its name; "" for the directory
	Err       error
	Mend      string
	Tolerated bool // it is of the directory, or a port in it: the gateway starts all the same
}

// Error says what is wrong and how to mend it.
func (f *PortFault) Error() string {
	what := f.Err.Error()
	if f.Port != "" {
		what = fmt.Sprintf("port %q: %v", f.Port, f.Err)
	}
	return what + "; " + f.Mend
}

// Unwrap returns what is wrong.
func (f *PortFault) Unwrap() error { return f.Err }

// InspectPorts returns the ports that a gateway with this configuration has when it starts,
// those of the directory among them, and what is wrong with any.
func InspectPorts(cfg *Config) (all []VMPort, faults []*PortFault) {
	if cfg.VM == nil {
		return nil, nil
	}
	taken := newTakenPorts(cfg)
	for i := range cfg.VM.Ports {
		_ = taken.add(&cfg.VM.Ports[i]) // checked
		all = append(all, cfg.VM.Ports[i])
	}
	if cfg.VM.Directory != "" {
		files, err := newPortFiles(cfg.VM.Directory).list()
		if err != nil {
			faults = append(faults, &PortFault{Err: err, Mend: "make the folder, or correct directory of [vm]", Tolerated: true})
		}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			path := filepath.Join(cfg.VM.Directory, name)
			p, err := LoadPort(path)
			if err == nil {
				if err = taken.add(&p); err != nil {
					err = fmt.Errorf("%s: %w", path, err)
				}
			}
			if err != nil {
				faults = append(faults, &PortFault{Port: name[:len(name)-len(portSuffix)], Err: err, Mend: "correct the file; the gateway reads it again by itself", Tolerated: true})
				continue
			}
			all = append(all, p)
		}
	}
	for i := range all {
		if f := all[i].inspectSocket(); f != nil {
			f.Tolerated = i >= len(cfg.VM.Ports)
			faults = append(faults, f)
		}
	}
	return all, faults
}

// inspectSocket looks whether the port's socket can be made, or called.
func (p *VMPort) inspectSocket() *PortFault {
	path := p.Path()
	info, err := os.Lstat(path)
	switch {
	case err == nil && info.Mode()&fs.ModeSocket == 0:
		return &PortFault{Port: p.Name, Err: fmt.Errorf("at %s is something else than a socket", path), Mend: "remove it, or correct at"}
	case p.Dial: // a hypervisor that is not there yet is no fault
		return nil
	}
	folder := filepath.Dir(path)
	info, err = os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &PortFault{Port: p.Name, Err: fmt.Errorf("the folder of its socket, %s, is not there", folder), Mend: "make it, for the gateway's user and the hypervisor's only"}
	case err != nil:
		return &PortFault{Port: p.Name, Err: err, Mend: "see who may look at the folder"}
	case !info.IsDir():
		return &PortFault{Port: p.Name, Err: fmt.Errorf("%s is not a folder", folder), Mend: "correct at"}
	}
	if err := unix.Access(folder, unix.W_OK|unix.X_OK); err != nil {
		return &PortFault{Port: p.Name, Err: fmt.Errorf("its socket cannot be made in %s: %w", folder, err), Mend: "let the gateway's user write there, or correct at"}
	}
	return nil
}
