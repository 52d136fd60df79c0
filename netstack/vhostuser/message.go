package vhostuser

import (
	"encoding/binary"
	"fmt"
)

// A request is the number of a message ("Front-end message types" of the protocol).
type request uint32

// The messages of a front end that are understood. The others belong to features that are not offered.
const (
	getFeatures         request = 1
	setFeatures         request = 2
	setOwner            request = 3
	resetOwner          request = 4
	setMemTable         request = 5
	setVringNum         request = 8
	setVringAddr        request = 9
	setVringBase        request = 10
	getVringBase        request = 11
	setVringKick        request = 12
	setVringCall        request = 13
	setVringErr         request = 14
	getProtocolFeatures request = 15
	setProtocolFeatures request = 16
	setVringEnable      request = 18
	netSetMTU           request = 20
	getConfig           request = 24
	setConfig           request = 25
)

// requestNames are as the protocol has them, without VHOST_USER_.
var requestNames = map[request]string{
	getFeatures: "GET_FEATURES", setFeatures: "SET_FEATURES", setOwner: "SET_OWNER", resetOwner: "RESET_OWNER",
	setMemTable: "SET_MEM_TABLE", setVringNum: "SET_VRING_NUM", setVringAddr: "SET_VRING_ADDR",
	setVringBase: "SET_VRING_BASE", getVringBase: "GET_VRING_BASE", setVringKick: "SET_VRING_KICK",
	setVringCall: "SET_VRING_CALL", setVringErr: "SET_VRING_ERR", getProtocolFeatures: "GET_PROTOCOL_FEATURES",
	setProtocolFeatures: "SET_PROTOCOL_FEATURES", setVringEnable: "SET_VRING_ENABLE", netSetMTU: "NET_SET_MTU",
	getConfig: "GET_CONFIG", setConfig: "SET_CONFIG",
}

func (r request) String() string {
	if name, ok := requestNames[r]; ok {
		return name
	}
	return fmt.Sprintf("message %d", uint32(r))
}

// Flags of a message's header ("Header" of the protocol).
const (
	version       = 1
	versionMask   = 3
	flagReply     = 1 << 2
	flagNeedReply = 1 << 3
	flagsKnown    = versionMask | flagReply | flagNeedReply
)

// Sizes in bytes, and other limits of messages.
const (
	headerLen       = 12 // request, flags, size
	u64Len          = 8
	stateLen        = 8  // index, number
	addrLen         = 40 // index, flags, descriptors, used, available, log
	tableLen        = 8  // number of regions, padding
	regionLen       = 32 // guest address, size, user address, offset
	configHeaderLen = 12 // offset, size, flags
	maxConfig       = 256
	maxRegions      = 8
	maxFDs          = maxRegions
	maxPayload      = configHeaderLen + maxConfig // the longest, just past a full memory table
)

// The payload of SET_VRING_KICK, SET_VRING_CALL and SET_VRING_ERR is the number of a ring, and a bit if there is no eventfd.
const (
	fdRingMask = 0xff
	fdNone     = 1 << 8
)

// A header is what each message begins with.
type header struct {
	request request
	flags   uint32
	size    uint32 // of what follows
}

// parseHeader checks the header of a front end's message. b has headerLen bytes.
func parseHeader(b []byte) (header, error) {
	h := header{request(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint32(b[8:])}
	switch {
	case h.flags&versionMask != version || h.flags&flagReply != 0 || h.flags&^flagsKnown != 0:
		return h, fmt.Errorf("%v: flags %#x, not those of a request of version 1", h.request, h.flags)
	case h.size > maxPayload:
		return h, fmt.Errorf("%v: %d bytes, at most %d", h.request, h.size, maxPayload)
	}
	return h, nil
}

// appendReply appends the reply to a request. payload is copied.
func appendReply(dst []byte, r request, payload []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(r))
	dst = binary.LittleEndian.AppendUint32(dst, version|flagReply)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(payload)))
	return append(dst, payload...)
}

// exactly returns an error if a payload has another length than n.
func exactly(b []byte, n int) error {
	if len(b) != n {
		return fmt.Errorf("%d bytes, not %d", len(b), n)
	}
	return nil
}

func parseU64(b []byte) (uint64, error) {
	if err := exactly(b, u64Len); err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(b), nil
}

// parseState parses the state of a ring: its index and a number.
func parseState(b []byte) (index, n uint32, err error) {
	if err := exactly(b, stateLen); err != nil {
		return 0, 0, err
	}
	return binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), nil
}

func appendState(dst []byte, index, n uint32) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, index)
	return binary.LittleEndian.AppendUint32(dst, n)
}

// A ringAddress says where a ring is, by addresses of the front end's own. The last field
// of the message, where changes of the ring are logged, is for migration.
type ringAddress struct {
	index, flags      uint32
	desc, used, avail uint64
}

func parseRingAddress(b []byte) (a ringAddress, err error) {
	if err := exactly(b, addrLen); err != nil {
		return a, err
	}
	u64 := binary.LittleEndian.Uint64
	return ringAddress{
		index: binary.LittleEndian.Uint32(b), flags: binary.LittleEndian.Uint32(b[4:]),
		desc: u64(b[8:]), used: u64(b[16:]), avail: u64(b[24:]),
	}, nil
}

// parseTable parses a memory table. Room for more regions may follow the last.
func parseTable(b []byte) ([]regionInfo, error) {
	if len(b) < tableLen {
		return nil, fmt.Errorf("%d bytes, at least %d", len(b), tableLen)
	}
	n := binary.LittleEndian.Uint32(b)
	if n == 0 || n > maxRegions {
		return nil, fmt.Errorf("%d regions, 1 to %d", n, maxRegions)
	}
	if want := tableLen + int(n)*regionLen; len(b) < want {
		return nil, fmt.Errorf("%d bytes, at least %d for %d regions", len(b), want, n)
	}
	regions := make([]regionInfo, n)
	u64 := binary.LittleEndian.Uint64
	for i := range regions {
		r := b[tableLen+i*regionLen:]
		regions[i] = regionInfo{guest: u64(r), size: u64(r[8:]), user: u64(r[16:]), offset: u64(r[24:])}
	}
	return regions, nil
}

// parseRingFD parses the payload that goes with an eventfd; none says that there is none.
func parseRingFD(b []byte) (index uint32, none bool, err error) {
	v, err := parseU64(b)
	if err == nil && v&^(fdRingMask|fdNone) != 0 {
		err = fmt.Errorf("%#x is not the number of a ring", v)
	}
	return uint32(v & fdRingMask), v&fdNone != 0, err
}

// parseConfig parses what part of a configuration space is asked for.
func parseConfig(b []byte) (offset, size uint32, err error) {
	if len(b) < configHeaderLen {
		return 0, 0, fmt.Errorf("%d bytes, at least %d", len(b), configHeaderLen)
	}
	offset, size = binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
	if offset > maxConfig || size > maxConfig-offset {
		return 0, 0, fmt.Errorf("%d bytes at %d, at most %d in all", size, offset, maxConfig)
	}
	return offset, size, exactly(b, configHeaderLen+int(size))
}
