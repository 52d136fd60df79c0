package main

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"sheaf/engine"
	"sheaf/tunnel"
)

// What a gateway could not do is told with what to do about it, by the kind of the
// error and not by its words.
func TestUpTrouble(t *testing.T) {
	_, missing := tunnel.LoadKey(filepath.Join(t.TempDir(), "key"))
	cfg := &engine.Config{Key: "/etc/sheaf/key", Listen: ":4747"}
	for _, tt := range []struct {
		err  error
		want string // behind the error; "" for nothing
	}{
		{missing, "make one with: sheaf keygen /etc/sheaf/key"},
		{fmt.Errorf("%w: %w", tunnel.ErrLoadKey, fs.ErrPermission), "the owner of the key"},
		{fmt.Errorf("%w :47: %w", tunnel.ErrListen, fs.ErrPermission), "a port from 1024 on"},
		{fmt.Errorf("%w: %w", tunnel.ErrInUse, fs.ErrExist), "ss -lptun 'sport = :4747'"},
		{fmt.Errorf("%w: %w", tunnel.ErrKey, fs.ErrInvalid), "sheaf keygen"},
		{fmt.Errorf("%w: %w", engine.ErrControl, fs.ErrNotExist), "set control to a path"},
		{fmt.Errorf("%w: %w", engine.ErrControl, fs.ErrPermission), "set control to a path"},
		{fmt.Errorf("control socket: %w", fs.ErrPermission), ""}, // only looks alike
		{fmt.Errorf("something else: %w", fs.ErrNotExist), ""},
	} {
		got := upTrouble(tt.err, cfg).Error()
		hint, ok := strings.CutPrefix(got, tt.err.Error())
		if !ok || (tt.want == "") != (hint == "") || !strings.Contains(hint, tt.want) {
			t.Errorf("%v became %q, without %q", tt.err, got, tt.want)
		}
	}
}
