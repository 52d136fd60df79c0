package vhostuser

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"sheaf/netstack/link"
	"sheaf/netstack/vhostuser/vhosttest"
)

// What is offered: rings of virtio 1, and nothing by which packets would not be whole.
func TestOffer(t *testing.T) {
	f := newRig(t).dial()
	features, err := f.Get(vhosttest.GetFeatures)
	const want = 1<<32 | 1<<30 | 1<<29 | 1<<28 | 1<<15 | 1<<5 | 1<<3 // VERSION_1, protocol, EVENT_IDX, INDIRECT_DESC, MRG_RXBUF, MAC, MTU
	if err != nil || features != want {
		t.Errorf("features %#x, %v, want %#x", features, err, uint64(want))
	}
	protocol, err := f.Get(vhosttest.GetProtocolFeatures)
	if want := uint64(vhosttest.ProtocolReplyAck | vhosttest.ProtocolMTU | vhosttest.ProtocolConfig); err != nil || protocol != want {
		t.Errorf("protocol features %#x, %v, want %#x", protocol, err, want)
	}
}

// negotiated returns a front end that took all protocol features.
func (r *rig) negotiated() *vhosttest.FrontEnd {
	r.t.Helper()
	f := r.dial()
	if err := f.Negotiate(0, ^uint64(0)); err != nil {
		r.t.Fatal(err)
	}
	return f
}

// A part of the configuration space, behind a copy of what was asked for.
func TestConfigSpace(t *testing.T) {
	f := newRig(t).negotiated()
	space := make([]byte, maxConfig)
	copy(space, testMAC)
	binary.LittleEndian.PutUint16(space[10:], testMTU)
	for _, part := range [][2]uint32{{0, 12}, {0, 6}, {10, 2}, {4, 100}, {0, maxConfig}, {maxConfig, 0}, {255, 1}} {
		ask := configOf(part[0], part[1])
		reply, err := f.Call(vhosttest.GetConfig, 0, ask)
		want := append(ask[:configHeaderLen:configHeaderLen], space[part[0]:part[0]+part[1]]...)
		if err != nil || !bytes.Equal(reply, want) {
			t.Errorf("%d bytes at %d: %x, %v, want %x", part[1], part[0], reply, err, want)
		}
	}
}

// configOf is the payload of GET_CONFIG and SET_CONFIG.
func configOf(offset, size uint32) []byte {
	b := vhosttest.State(offset, size)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return append(b, make([]byte, size)...)
}

// What is refused is refused in the acknowledgement, and the connection stays.
func TestRefusals(t *testing.T) {
	r := newRig(t)
	f := r.negotiated()
	for _, c := range []struct {
		request uint32
		payload []byte
		refused bool
	}{
		{vhosttest.NetSetMTU, vhosttest.U64(testMTU), false},
		{vhosttest.NetSetMTU, vhosttest.U64(testMTU + 1), true},
		{vhosttest.NetSetMTU, vhosttest.U64(1 << 40), true},
		{vhosttest.SetConfig, configOf(0, 6), true},
		{vhosttest.SetOwner, nil, false},
	} {
		err := f.Acknowledged(c.request, c.payload)
		if refused := errors.As(err, new(*vhosttest.RefusedError)); refused != c.refused || !refused && err != nil {
			t.Errorf("message %d, %x: %v", c.request, c.payload, err)
		}
		if c.refused {
			r.fault("the front end: ", request(c.request).String())
		}
	}
	if err := f.Send(vhosttest.NetSetMTU, vhosttest.U64(testMTU+1)); err != nil { // and no reply is asked for
		t.Fatal(err)
	}
	if _, err := f.Get(vhosttest.GetFeatures); err != nil {
		t.Errorf("after the refusals: %v", err)
	}
}

// Without REPLY_ACK nothing is acknowledged, whoever asks for it.
func TestNoReplyAck(t *testing.T) {
	f := newRig(t).dial()
	if err := f.Negotiate(0, 0); err != nil {
		t.Fatal(err)
	}
	if err := f.Raw(vhosttest.Message(vhosttest.SetOwner, vhosttest.FlagNeedReply, nil)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Get(vhosttest.GetFeatures); err != nil { // which sees the next reply
		t.Error(err)
	}
}

// A front end that breaks a rule loses its connection and nothing else, with the rule in
// the status; what it sent along is closed, as newRig looks at.
func TestViolations(t *testing.T) {
	u64, state, table := vhosttest.U64, vhosttest.State, vhosttest.Table
	type say struct {
		request uint32
		payload []byte
		fds     []int
	}
	nine := make([]int, maxFDs+1)
	for i := range nine {
		nine[i] = eventfd(t)
	}
	address := func(ring, flags uint32) []byte {
		return append(state(ring, flags), make([]byte, addrLen-8)...)
	}
	region := vhosttest.Region{Guest: 0, Size: 1 << 16, User: 1 << 20}
	page := uint64(4096)
	mem := func(size int) []int { return []int{memfd(t, size)} }
	for name, c := range map[string]struct {
		say  say
		word string
	}{
		"message 0":             {say{0, nil, nil}, "message 0: of a feature that is not offered"},
		"of a feature":          {say{vhosttest.SetLogBase, make([]byte, 16), nil}, "not offered"},
		"number of queues":      {say{vhosttest.GetQueueNum, nil, nil}, "not offered"},
		"a longer GET_FEATURES": {say{vhosttest.GetFeatures, u64(0), nil}, "GET_FEATURES: 8 bytes, not 0"},
		"a shorter SET_OWNER":   {say{vhosttest.SetOwner, u64(0), nil}, "SET_OWNER"},
		"7 bytes":               {say{vhosttest.SetFeatures, u64(0)[:7], nil}, "7 bytes, not 8"},
		"packed":                {say{vhosttest.SetFeatures, u64(1<<34 | 1<<32), nil}, "feature 34 (packed rings)"},
		"an IOMMU":              {say{vhosttest.SetFeatures, u64(1 << 33), nil}, "feature 33 (addresses behind an IOMMU)"},
		"multi-queue":           {say{vhosttest.SetFeatures, u64(1 << 22), nil}, "feature 22 (several queues)"},
		"logging":               {say{vhosttest.SetFeatures, u64(1 << 26), nil}, "feature 26 (logging"},
		"checksum offload":      {say{vhosttest.SetFeatures, u64(1), nil}, "feature 0 (an offload)"},
		"segmentation offload":  {say{vhosttest.SetFeatures, u64(1 << 11), nil}, "feature 11 (an offload)"},
		"MQ":                    {say{vhosttest.SetProtocolFeatures, u64(1), nil}, "protocol feature 0 is not offered"},
		"fd with a number":      {say{vhosttest.SetOwner, nil, nine[:1]}, "1 file descriptors, more than it needs"},
		"nine fds":              {say{vhosttest.SetMemTable, table(region), nine}, "more than 8 file descriptors"},
		"no regions":            {say{vhosttest.SetMemTable, table(), nil}, "0 regions"},
		"nine regions":          {say{vhosttest.SetMemTable, append(state(9, 0), make([]byte, 8*regionLen)...), nil}, "9 regions"},
		"a short table":         {say{vhosttest.SetMemTable, table(region)[:tableLen+regionLen-1], mem(1 << 16)}, "at least 40"},
		"half a table":          {say{vhosttest.SetMemTable, make([]byte, 7), nil}, "7 bytes"},
		"region without fd":     {say{vhosttest.SetMemTable, table(region), nil}, "1 regions with 0 files"},
		"fd without region":     {say{vhosttest.SetMemTable, table(region), nine[:2]}, "1 regions with 2 files"},
		"memory is an eventfd":  {say{vhosttest.SetMemTable, table(region), nine[:1]}, "neither tmpfs nor hugetlbfs"},
		"memory is a file":      {say{vhosttest.SetMemTable, table(region), []int{open(t, "/proc/self/exe")}}, "neither tmpfs nor hugetlbfs"},
		"memory past its file":  {say{vhosttest.SetMemTable, table(region), mem(1<<16 - 1)}, "it ends at 0x10000, its file at 0xffff"},
		"an offset past it":     {say{vhosttest.SetMemTable, table(vhosttest.Region{Size: page, Offset: 1 << 16}), mem(1 << 16)}, "it ends at 0x11000"},
		"an endless region":     {say{vhosttest.SetMemTable, table(vhosttest.Region{Size: ^uint64(0), Offset: page}), mem(1 << 16)}, "size 0xffffffffffffffff"},
		"an endless offset":     {say{vhosttest.SetMemTable, table(vhosttest.Region{Size: page, Offset: ^uint64(0)}), mem(1 << 16)}, "offset 0xffffffffffffffff"},
		"an empty region":       {say{vhosttest.SetMemTable, table(vhosttest.Region{}), mem(1 << 16)}, "size 0x0"},
		"regions that overlap":  {say{vhosttest.SetMemTable, table(region, region), append(mem(1<<16), mem(1<<16)...)}, "SET_MEM_TABLE"},
		"sealed memory":         {say{vhosttest.SetMemTable, table(region), []int{sealed(t, 1<<16)}}, "mmap"},
		"ring 2":                {say{vhosttest.SetVringNum, state(2, 256), nil}, "ring 2 of 2"},
		"ring 2's base":         {say{vhosttest.GetVringBase, state(2, 0), nil}, "ring 2 of 2"},
		"ring 2's address":      {say{vhosttest.SetVringAddr, address(2, 0), nil}, "ring 2 of 2"},
		"ring 2's kick":         {say{vhosttest.SetVringKick, u64(2), nine[:1]}, "ring 2 of 2"},
		"ring 512":              {say{vhosttest.SetVringKick, u64(512), nine[:1]}, "0x200 is not the number of a ring"},
		"a ring of no size":     {say{vhosttest.SetVringNum, state(0, 0), nil}, "0 is no size"},
		"a ring of 3":           {say{vhosttest.SetVringNum, state(0, 3), nil}, "3 is no size"},
		"a ring of 64 K":        {say{vhosttest.SetVringNum, state(0, 65536), nil}, "65536 is no size"},
		"half a state":          {say{vhosttest.SetVringNum, state(0, 256)[:4], nil}, "4 bytes, not 8"},
		"a packed base":         {say{vhosttest.SetVringBase, state(0, 65536), nil}, "0x10000 is no index"},
		"enable 2":              {say{vhosttest.SetVringEnable, state(0, 2), nil}, "2, neither 0 nor 1"},
		"a short address":       {say{vhosttest.SetVringAddr, address(0, 0)[:addrLen-1], nil}, "39 bytes, not 40"},
		"a logged ring":         {say{vhosttest.SetVringAddr, address(0, 1), nil}, "logging is not offered"},
		"polling":               {say{vhosttest.SetVringKick, u64(vhosttest.NoFD), nil}, "polling is not offered"},
		"kick without fd":       {say{vhosttest.SetVringKick, u64(0), nil}, "0 file descriptors, not 1"},
		"kick with two":         {say{vhosttest.SetVringKick, u64(0), nine[:2]}, "2 file descriptors, not 1"},
		"none, and one":         {say{vhosttest.SetVringCall, u64(vhosttest.NoFD), nine[:1]}, "1 file descriptors, more than it needs"},
		"kick is memory":        {say{vhosttest.SetVringKick, u64(0), mem(8)}, "no eventfd"},
		"call is a file":        {say{vhosttest.SetVringCall, u64(1), []int{open(t, "/dev/null")}}, "no eventfd"},
		"config of 257":         {say{vhosttest.GetConfig, configOf(0, 256)[:configHeaderLen], nil}, "12 bytes, not 268"},
		"config past its end":   {say{vhosttest.GetConfig, configOf(2, 255), nil}, "255 bytes at 2"},
		"config far past it":    {say{vhosttest.GetConfig, configOf(^uint32(0), 2), nil}, "2 bytes at 4294967295"},
		"half a config":         {say{vhosttest.GetConfig, make([]byte, 11), nil}, "11 bytes, at least 12"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			f := r.negotiated()
			if err := f.Send(c.say.request, c.say.payload, c.say.fds...); err != nil {
				t.Fatal(err)
			}
			within(t, "the end of the connection", func() {
				if err := f.Gone(); err != nil {
					t.Error(err)
				}
			})
			r.fault("the front end: ", c.word)
			r.exchange(r.guest(vhosttest.Options{}))
			if s := r.nic.Status(); s.Fault != "" {
				t.Errorf("fault %q with a guest", s.Fault)
			}
		})
	}
}

// sealed returns memory that cannot be written.
func sealed(t *testing.T, size int) int {
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); err != nil {
		t.Fatal(err)
	}
	return fd
}

// A violation that is to be acknowledged is, before the connection ends.
func TestViolationAcknowledged(t *testing.T) {
	f := newRig(t).negotiated()
	if err := f.Acknowledged(vhosttest.SetMemTable, vhosttest.Table()); !errors.As(err, new(*vhosttest.RefusedError)) {
		t.Errorf("an empty table: %v", err)
	}
	within(t, "the end of the connection", func() { f.Gone() })
}

// Features that were not taken cannot be used.
func TestNotTaken(t *testing.T) {
	for _, m := range []struct {
		request uint32
		payload []byte
	}{{vhosttest.GetConfig, configOf(0, 12)}, {vhosttest.NetSetMTU, vhosttest.U64(1000)}} {
		r := newRig(t)
		f := r.dial()
		if err := f.Send(m.request, m.payload); err != nil {
			t.Fatal(err)
		}
		within(t, "the end of the connection", func() { f.Gone() })
		r.fault("of a feature that was not taken")
	}
}

// A device that says nothing of itself does not offer to be asked.
func TestNothingConfigured(t *testing.T) {
	noLeaks(t)
	path := t.TempDir() + "/s"
	n, err := OpenNIC(NICConfig{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	f, err := vhosttest.Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	protocol, err := f.Get(vhosttest.GetProtocolFeatures)
	if err != nil || protocol != vhosttest.ProtocolReplyAck {
		t.Errorf("protocol features %#x, %v", protocol, err)
	}
	features, err := f.Get(vhosttest.GetFeatures)
	if err != nil || features&(1<<3|1<<5) != 0 {
		t.Errorf("features %#x, %v", features, err)
	}
}

// Headers that are none, and front ends that go in the middle of a message.
func TestHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		bytes []byte
		fault string
	}{
		"version 0":         {[]byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "flags 0x0"},
		"version 2":         {[]byte{1, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0}, "flags 0x2"},
		"a reply":           {vhosttest.Message(vhosttest.GetFeatures, vhosttest.FlagReply, nil), "flags 0x5"},
		"another flag":      {vhosttest.Message(vhosttest.GetFeatures, 1<<4, nil), "flags 0x11"},
		"too long":          {[]byte{24, 0, 0, 0, 1, 0, 0, 0, 13, 1, 0, 0}, "269 bytes, at most 268"},
		"endless":           {[]byte{24, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255}, "4294967295 bytes"},
		"half a header":     {[]byte{1, 0, 0, 0, 1}, ""},
		"header, no more":   {vhosttest.Message(vhosttest.SetFeatures, 0, vhosttest.U64(0))[:12], ""},
		"half of a payload": {vhosttest.Message(vhosttest.SetFeatures, 0, vhosttest.U64(0))[:15], ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			f := r.negotiated()
			if err := f.Raw(c.bytes, eventfd(t)); err != nil {
				t.Fatal(err)
			}
			if c.fault != "" {
				within(t, "the end of the connection", func() { f.Gone() })
				r.fault(c.fault)
			}
			f.Close()
			r.exchange(r.guest(vhosttest.Options{}))
		})
	}
}

// A message may come byte by byte; descriptors come with the first.
func TestSlowly(t *testing.T) {
	r := newRig(t)
	f := r.negotiated()
	for _, b := range [][]byte{
		vhosttest.Message(vhosttest.SetVringCall, 0, vhosttest.U64(1)),
		vhosttest.Message(vhosttest.SetVringErr, 0, vhosttest.U64(0)),
	} {
		for i := range b {
			var fds []int
			if i == 0 {
				fds = []int{eventfd(t)}
			} else if i == 1 || i == len(b)-1 {
				fds = []int{eventfd(t), eventfd(t)} // that nobody takes
			}
			if err := f.Raw(b[i:i+1], fds...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := f.Get(vhosttest.GetFeatures); err != nil {
		t.Errorf("after it: %v, %+v", err, r.nic.Status())
	}
	r.until("no fault", func(s link.Status) bool { return s.Fault == "" })
}
