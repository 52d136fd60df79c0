package virtio

import (
	"encoding/binary"
	"errors"
	"testing"
)

// A host whose words are not those of the rings refuses them.
func TestBigEndianHostIsRefused(t *testing.T) {
	c := QueueConfig{Size: 1}
	if err := c.check(binary.LittleEndian); err != nil {
		t.Error(err)
	}
	if err := c.check(binary.BigEndian); !errors.Is(err, ErrRing) {
		t.Error(err)
	}
}
