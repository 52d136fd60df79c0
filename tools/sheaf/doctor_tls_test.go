package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sheaf/engine"
)

// TestDoctorKeyLog holds what is made of key logs, of what the gateway that is running
// tells of them, and of servers whose secrets the other gateway has.
func TestDoctorKeyLog(t *testing.T) {
	write := func(mode os.FileMode) func(string) error {
		return func(path string) error {
			return errors.Join(os.WriteFile(path, []byte("# a key log\n"), 0o600), os.Chmod(path, mode))
		}
	}
	nothing := func(string) error { return nil }
	// now is the patient's clock.
	now := time.Date(2027, 1, 2, 3, 4, 5, 0, time.UTC)
	secrets := func(s engine.SecretsStatus, k engine.KeyLogStatus) func(path string) *engine.SecretsStatus {
		return func(path string) *engine.SecretsStatus {
			k.Path = path
			s.KeyLogs = []engine.KeyLogStatus{k}
			return &s
		}
	}
	grew := engine.KeyLogStatus{Grew: now.Add(-75 * time.Second)}
	const keylog = "server = [\"10.2.0.10:8883\"]\nkeylog = \"PATH\"\n"
	for _, test := range []struct {
		name    string
		table   string
		make    func(path string) error
		running func(path string) *engine.SecretsStatus // nil: no gateway runs
		lines   []string                                // each in what it says, in order
		mend    string
	}{
		{"not there", keylog, nothing, nil, []string{"warn key log PATH is not there"}, "so that it writes there"},
		{"for others", keylog, write(0o644), nil, []string{"FAIL key log key log is refused: others may read or write PATH, mode 0644; run: chmod 600 PATH"}, ""},
		{"a folder", keylog, func(path string) error { return os.Mkdir(path, 0o700) }, nil, []string{"FAIL key log key log is refused: PATH is not a regular file"}, ""},
		{"no folder", "server = [\"10.2.0.10:8883\"]\nkeylog = \"PATH/none/keys\"\n", write(0o600), nil, []string{"FAIL key log"}, "folder and file system"},
		{"well", keylog, write(0o600), nil, []string{"ok key log PATH grew last"}, ""},
		{"empty", keylog, func(path string) error { return os.WriteFile(path, nil, 0o600) }, nil, []string{"warn key log PATH is empty"}, "has taken connections"},
		{"running", keylog, write(0o600), secrets(engine.SecretsStatus{Connections: 7, Asked: 5}, grew),
			[]string{"ok key log PATH grew last 1 min 15 s ago", "ok key log secrets of 7 connections, and packets of 5 of these were seen here"}, ""},
		{"running, and nothing came", keylog, write(0o600), secrets(engine.SecretsStatus{}, engine.KeyLogStatus{}), []string{"warn key log PATH is empty"}, "has taken connections"},
		{"running, nothing matches", keylog, write(0o600), secrets(engine.SecretsStatus{Connections: 7}, grew),
			[]string{"ok key log PATH grew", "warn key log it has secrets of 7 connections, and packets of none were seen here"}, "what clients connect to"},
		{"running, bad lines", keylog, write(0o600), secrets(engine.SecretsStatus{Connections: 1, Asked: 1, Bad: 3}, grew),
			[]string{"ok key log PATH grew", "warn key log 3 lines could not be read", "ok key log secrets of 1 connection, and packets of 1"}, "nothing but key logs"},
		{"running, a fault", keylog, write(0o600), secrets(engine.SecretsStatus{}, engine.KeyLogStatus{Fault: "not emptied"}), []string{"FAIL key log the gateway that is running does not use it: not emptied"}, "see the gateway's log"},
		{"running with another configuration", keylog, write(0o600), func(string) *engine.SecretsStatus { return nil }, []string{"warn key log the gateway that is running does not read PATH"}, "restart the gateway"},
		{"the peer tells", "server = [\"10.2.0.10:8883\", \"[fd00:2::10]:8883\"]\n", nothing, nil,
			[]string{"ok TLS 10.2.0.10:8883: datacentre tells the secrets", "ok TLS [fd00:2::10]:8883: datacentre tells"}, ""},
		{"nobody tells", "server = [\"10.7.0.10:8883\"]\n", nothing, nil, []string{"warn TLS 10.7.0.10:8883 is behind no peer"}, "name its keylog"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPatient(t)
			path := filepath.Join(t.TempDir(), "keys")
			if err := test.make(path); err != nil {
				t.Fatal(err)
			}
			p.config += "[[tls]]\n" + strings.ReplaceAll(test.table, "PATH", path)
			var running *engine.Status
			if test.running != nil {
				running = &engine.Status{Secrets: test.running(path)}
			}
			out, _ := p.examine(t, running)
			var said []string
			mends := 0
			for line := range strings.Lines(out) {
				line = strings.Join(strings.Fields(line), " ")
				mend, isMend := strings.CutPrefix(line, "mend: ")
				_, about, _ := strings.Cut(line, " ")
				switch {
				case isMend && test.mend != "" && strings.Contains(mend, test.mend):
					mends++
				case !isMend && (strings.HasPrefix(about, "key log ") || strings.HasPrefix(about, "TLS ")):
					said = append(said, line)
				}
			}
			// Tests run on disks and in memory: where the file is makes a line of its own.
			if len(said) > 0 && strings.Contains(said[0], "is on a disk") {
				said = said[1:]
			}
			if len(said) != len(test.lines) || test.mend != "" && mends == 0 {
				t.Fatalf("%d times %q in\n%s", mends, test.mend, out)
			}
			for i, want := range test.lines {
				if want = strings.ReplaceAll(want, "PATH", path); !strings.HasPrefix(said[i], want) {
					t.Errorf("%q, expected %q", said[i], want)
				}
			}
		})
	}
}

// Root without CAP_DAC_OVERRIDE reads only what is its own.
func TestDoctorKeyLogOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	path := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(path, []byte("# a key log\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for owner, want := range map[int]bool{0: false, 65534: true} {
		if err := os.Chown(path, owner, -1); err != nil {
			t.Fatal(err)
		}
		p := newPatient(t)
		p.config += "[[tls]]\nserver = [\"10.2.0.10:8883\"]\nkeylog = \"" + path + "\"\n"
		if out, _ := p.examine(t, nil); strings.Contains(out, "is another user's") != want || want != strings.Contains(out, "chown root "+path) {
			t.Errorf("of user %d:\n%s", owner, out)
		}
	}
}

// A key log on a disk is told of, one on a tmpfs is not.
func TestDoctorKeyLogOnDisk(t *testing.T) {
	memory, err := os.MkdirTemp("/dev/shm", "doctor")
	if err != nil {
		t.Skip("/dev/shm is not there")
	}
	defer os.RemoveAll(memory)
	for folder, want := range map[string]bool{memory: false, t.TempDir(): true} {
		var where unix.Statfs_t
		if err := unix.Statfs(folder, &where); err != nil || (where.Type == unix.TMPFS_MAGIC) == want {
			t.Skipf("%s is not where it was thought to be: %v", folder, err)
		}
		path := filepath.Join(folder, "keys")
		if err := os.WriteFile(path, []byte("# a key log\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := newPatient(t)
		p.config += "[[tls]]\nserver = [\"10.2.0.10:8883\"]\nkeylog = \"" + path + "\"\n"
		out, _ := p.examine(t, nil)
		if strings.Contains(out, "is on a disk") != want || want != strings.Contains(out, "put it on a tmpfs") {
			t.Errorf("%s:\n%s", folder, out)
		}
	}
}
