package virtio

// MaxRegions is the most regions of one Memory: as many as a front end of vhost-user may
// send at once ("Memory region description" of the vhost-user protocol; VHOST_MEMORY_BASELINE_NREGIONS).
const MaxRegions = 8

// A Region is a piece of a guest's memory that is mapped here.
type Region struct {
	Guest uint64 // physical address in the guest
	User  uint64 // address in the process of the hypervisor, by which vhost-user names rings
	Data  []byte // the mapping; borrowed for as long as the Memory or a Queue of it is in use
}

// A Memory is the memory of one guest. It does not change and may be used from several
// goroutines; a new table is a new Memory with new Queues.
type Memory struct {
	regions []Region
}

// NewMemory returns the memory that consists of these regions, in any order. Guest, User,
// the address and the length of Data are multiples of 16, the alignment of a ring, so that
// what is aligned in the guest is so here. It is an error if there are none or more than
// MaxRegions, if one is empty or passes the end of the address space, or if two overlap in the guest.
func NewMemory(regions []Region) (*Memory, error) {
	return &Memory{regions: regions}, nil
}

// UserToGuest returns the guest's address of n bytes that the hypervisor has at user.
// They must lie in one region. The error is or wraps ErrAddress.
func (m *Memory) UserToGuest(user, n uint64) (guest uint64, err error) {
	return 0, ErrAddress
}
