package seal

// A stage is what part of a connection keys protect: in TLS 1.3 first the rest of the
// handshake, then the traffic, in 1.2 the traffic only.
type stage uint8

const (
	stageHandshake stage = iota
	stageTraffic
	stages
)

// A keyring has the keys of one direction of a connection: those in use, and those that
// are known and will be.
type keyring struct {
	current *Keys // nil where there are none
	before  *Keys // those that a KeyUpdate turned into current; nil where none did
	stage   stage // of current
	number  uint64
	proven  bool // the last record was opened, or number is certain
	ready   [stages]candidate
	passed  uint64  // protected records that went by since the stage before ended
	misses  int     // records that were not opened since one was
	head    [4]byte // of the handshake message that is passing: type, length(3)
	had     int     // bytes of head that were there
	message int     // bytes still to come behind it
}

// A candidate is a set of keys that were not in use yet, and where its records are looked
// for.
type candidate struct {
	keys   *Keys  // nil where there is none
	near   uint64 // a record's number, not long ago
	hinted bool   // near is known
	cursor uint64 // where the search goes on
	tries  int    // records that it was tried on
}

const (
	// The search for a record's number: around where it was last heard of, with the
	// first records and with every so many of those behind; then, of a connection whose
	// beginning was not seen, upward from 0, some numbers with each record.
	searchBehind = 64
	searchAhead  = 1 << 10
	searchEager  = 16
	searchLazy   = 64
	searchEnd    = 1 << 22

	// maxMisses is how many records in a row are tried in vain before nothing more is
	// tried, once the search is through: what does not fit is of another connection.
	maxMisses = 64

	// uncounted is how many records of the handshake may have gone by unopened before
	// those of the traffic, which count from 0.
	uncounted = 16
)

// any says whether there are keys to try.
func (k *keyring) any() bool {
	return k.current != nil || k.ready[stageHandshake].keys != nil || k.ready[stageTraffic].keys != nil
}

// maxSpared is how many records a handshake's flight has at most that is too short to be
// opened: EncryptedExtensions and Finished, where a session is resumed.
const maxSpared = 2

// spared says whether the record that went by is not worth the keys of the handshake, which
// may not even have been told.
func (k *keyring) spared(o *Opener) bool {
	return k.current == nil && k.any() && o.counted && k.passed <= maxSpared &&
		(!o.worth || o.conn.TLS13() && k.ready[stageHandshake].keys == nil)
}

// has says whether some material of a stage is among the keys.
func (k *keyring) has(s stage, material []byte) bool {
	for _, keys := range []*Keys{k.current, k.ready[s].keys} {
		if keys != nil && string(keys.Material()) == string(material) {
			return true
		}
	}
	return false
}

// learn takes in keys of a stage. near is the number of one of its records where hinted
// says so.
func (k *keyring) learn(s stage, keys *Keys, near uint64, hinted bool) {
	if k.current != nil && (s < k.stage || s == k.stage && k.proven) {
		keys.Clear()
		return
	}
	k.ready[s].keys.Clear()
	k.ready[s] = candidate{keys: keys, near: near, hinted: hinted}
	k.misses = 0
}

// open opens a whole record, with whatever keys it takes. They are in use then, and
// number is the record's. The plaintext is borrowed from the Opener's room.
func (k *keyring) open(o *Opener, record []byte) (inner []byte, ok bool) {
	if k.current != nil {
		if inner, ok := o.room.open(k.current, record, k.number); ok {
			k.prove()
			return inner, true
		}
	}
	for s := stageHandshake; s < stages; s++ {
		c := &k.ready[s]
		if c.keys == nil || c.through() && k.misses > maxMisses || s == stageHandshake && !o.worth {
			continue
		}
		if n, ok := c.find(record, k.passed, o.counted); ok {
			k.use(o, s, n)
			return o.room.open(k.current, record, n)
		}
	}
	if k.current == nil || k.proven || k.misses > maxMisses {
		return nil, false
	}
	around := candidate{keys: k.current, near: k.number, hinted: true, cursor: searchEnd}
	if n, ok := around.find(record, 0, false); ok {
		k.number = n
		k.prove()
		return o.room.open(k.current, record, n)
	}
	return k.updated(o, record)
}

// updated opens a record behind a KeyUpdate that was not seen.
func (k *keyring) updated(o *Opener, record []byte) (inner []byte, ok bool) {
	next, err := k.current.Next()
	if err != nil {
		return nil, false
	}
	n, ok := Find(next, record, 0, searchBehind)
	if !ok {
		next.Clear()
		return nil, false
	}
	k.follow(o, next)
	k.number = n
	k.prove()
	return o.room.open(next, record, n)
}

// chunk returns how many numbers are tried with a record: some 60 us of them, at 60 ns with
// AES, at 180 with ChaCha20, and at 400 in TLS 1.2, where only opening the record can tell.
func (k *Keys) chunk() uint64 {
	switch {
	case !k.suite.tls13:
		return 1 << 7
	case k.suite.chacha:
		return 1 << 8
	}
	return 1 << 10
}

// find looks for a record's number. passed is how many protected records have gone by,
// from the connection's first where counted says so.
func (c *candidate) find(record []byte, passed uint64, counted bool) (uint64, bool) {
	try := func(from, to uint64) (uint64, bool) { return Find(c.keys, record, from, to) }
	if n, ok := try(0, 1); ok {
		return n, true
	}
	if counted {
		c.cursor = searchEnd // there is nothing else to be searched
		if n, ok := try(passed-min(passed, uncounted), passed+1); ok {
			return n, true
		}
	}
	if c.tries++; c.hinted && (c.tries <= searchEager || c.tries%searchLazy == 0) {
		if n, ok := try(c.near-min(c.near, searchBehind), c.near+searchAhead); ok {
			return n, true
		}
	}
	if c.through() {
		return 0, false
	}
	from := c.cursor
	c.cursor += c.keys.chunk()
	return try(from, c.cursor)
}

// through says whether the search has come to its end.
func (c *candidate) through() bool { return c.cursor >= searchEnd }

// use takes the keys of a stage, for a record's number.
func (k *keyring) use(o *Opener, s stage, number uint64) {
	keys := k.ready[s].keys
	k.ready[s] = candidate{}
	for i := range s {
		k.ready[i].keys.Clear()
		k.ready[i] = candidate{}
	}
	k.current.Clear()
	k.before.Clear()
	k.current, k.before, k.stage, k.number = keys, nil, s, number
	k.had, k.passed = 0, 0
	o.ring.clear()
	k.prove()
}

// follow takes the keys behind a KeyUpdate.
func (k *keyring) follow(o *Opener, next *Keys) {
	k.before.Clear()
	k.before, k.current, k.number = k.current, next, 0
	k.had = 0
	o.ring.clear()
}

// prove notes that the keys and the number are right.
func (k *keyring) prove() { k.proven, k.misses = true, 0 }

// miss notes that they were not.
func (k *keyring) miss() {
	k.misses++
	k.proven = false
}

// pass notes that a protected record went by. Where it was not tried, with its nonce in two
// segments or some of it sent before, the number of the next one is as certain as ever.
func (k *keyring) pass() {
	k.passed++
	k.number++
	k.had = 0 // what it held of a message is not known
}

// sure says whether a record can be opened of which only the beginning is there: then
// nothing proves the keys and their number before its end.
func (k *keyring) sure(o *Opener) bool {
	if c := &k.ready[stageHandshake]; k.current == nil && c.keys != nil && o.counted && k.passed == 0 {
		k.use(o, stageHandshake, 0)
	}
	return k.current != nil && k.proven
}

// change notes a ChangeCipherSpec of TLS 1.2, behind which records are counted anew.
func (k *keyring) change(o *Opener) {
	k.passed = 0
	if c := &k.ready[stageTraffic]; c.keys != nil && k.current == nil {
		k.use(o, stageTraffic, 0)
	}
}

// handshake follows the messages of an opened record of the handshake, or of a part of
// it, whose end changes the keys (RFC 8446 sections 4.4.4 and 4.6.3). Messages straddle
// records as they like (section 5.1).
func (k *keyring) handshake(o *Opener, b []byte) {
	const certificateRequest, finished, keyUpdate = 13, 20, 24
	if !k.current.suite.tls13 {
		return
	}
	for len(b) > 0 {
		if had := k.had; had < len(k.head) {
			k.had += copy(k.head[had:], b)
			b = b[k.had-had:]
			if k.had < len(k.head) {
				return
			}
			k.message = int(k.head[1])<<16 | int(k.head[2])<<8 | int(k.head[3])
		}
		n := min(k.message, len(b))
		k.message -= n
		b = b[n:]
		if k.message > 0 {
			return
		}
		k.had = 0
		switch {
		case k.head[0] == certificateRequest:
			o.conn.certificates = true
		case k.head[0] == finished && k.stage == stageHandshake:
			k.end(o)
			return
		case k.head[0] == keyUpdate && k.stage == stageTraffic:
			if next, err := k.current.Next(); err == nil {
				k.follow(o, next)
			}
			return
		}
	}
}

// end ends the handshake: the traffic's records count from 0.
func (k *keyring) end(o *Opener) {
	k.passed = 0
	if c := &k.ready[stageTraffic]; c.keys != nil {
		k.use(o, stageTraffic, 0)
		return
	}
	k.current.Clear()
	k.before.Clear()
	k.current, k.before, k.proven = nil, nil, false
}

// unheard notes that the far end knows none of the keys.
func (k *keyring) unheard() {
	for _, keys := range []*Keys{k.current, k.ready[0].keys, k.ready[1].keys} {
		if keys != nil {
			keys.heard = false
		}
	}
}

// clear forgets all keys, and overwrites what can be.
func (k *keyring) clear() {
	for _, keys := range []*Keys{k.current, k.before, k.ready[0].keys, k.ready[1].keys} {
		keys.Clear()
	}
	*k = keyring{}
}
