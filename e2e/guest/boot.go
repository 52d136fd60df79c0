package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// boot mounts the kernel's file systems and loads the modules.
func boot() error {
	var faults []error
	for _, m := range []struct{ kind, at string }{{"proc", "/proc"}, {"sysfs", "/sys"}, {"devtmpfs", "/dev"}, {"tmpfs", "/tmp"}} {
		_ = os.MkdirAll(m.at, 0o755)
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil && !errors.Is(err, unix.EBUSY) {
			faults = append(faults, fmt.Errorf("mount %s: %w", m.at, err))
		}
	}
	modules, _ := filepath.Glob("/modules/*.ko") // sorted, and numbered
	for _, path := range modules {
		if err := loadModule(path); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", path, err))
		}
	}
	if err := setUp("lo"); err != nil {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); !errors.Is(err, unix.EEXIST) {
		return err
	}
	return nil
}

// openConsole opens the second serial port, without echo or any translation (termios(3)).
func openConsole() (*os.File, error) {
	f, err := os.OpenFile("/dev/ttyS1", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	t, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	if err != nil {
		return nil, err
	}
	t.Iflag, t.Oflag, t.Lflag = 0, 0, 0
	t.Cflag = unix.CS8 | unix.CREAD | unix.CLOCAL | unix.B115200
	t.Cc[unix.VMIN], t.Cc[unix.VTIME] = 1, 0
	return f, unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, t)
}
