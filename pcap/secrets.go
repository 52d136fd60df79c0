package pcap

const (
	// blockSecrets is the type of a Decryption Secrets Block, draft-ietf-opsawg-pcapng
	// section 4.7.
	blockSecrets = 0x0a
	// secretsTLS is the type of secrets ("TLSK") that are a TLS key log.
	secretsTLS = 0x544c534b
	// secretsLimit is what a block of secrets may hold, in bytes. A connection of TLS 1.3
	// takes about 1 kB of a key log, so these are the secrets of more connections than a
	// client has ports; tools write a key log into one block however long it is.
	secretsLimit = 64 << 20
)

// KeyLog has use called with each TLS key log that the capture holds, once it is read and
// before Next returns the packet behind it. Lines are as NSS writes them, one or several,
// and are borrowed for the call: they are cleared behind it. Key logs are in pcapng only,
// in Decryption Secrets Blocks, and are to stand before the packets that they are for. A
// Reader that was not told of a use skips them. To be called before Next.
func (r *Reader) KeyLog(use func(lines []byte)) {
	if p, ok := r.format.(*pcapng); ok {
		p.keyLog = use
	}
}

// secrets reads a Decryption Secrets Block:
//
//	type of secrets (4) | length (4) | secrets, padded to 4 | options
func (p *pcapng) secrets(b *block) error {
	h, err := p.take(b, 8)
	if err != nil {
		return err
	}
	kind, length := p.order.Uint32(h), p.order.Uint32(h[4:])
	switch {
	case length > b.left:
		return b.damaged("secrets before packet %d claim %d bytes in a block of %d", b.number, length, b.total)
	case kind != secretsTLS || p.keyLog == nil || length == 0:
		return nil
	case length > secretsLimit:
		return b.damaged("secrets before packet %d claim %d bytes; the limit is %d", b.number, length, secretsLimit)
	}
	lines, err := p.takeSecrets(b, int(length))
	defer clear(lines)
	if err != nil {
		return err
	}
	p.keyLog(lines)
	return nil
}

// takeSecrets consumes n bytes of the block's body into a buffer of their own, which
// grows with what the file really holds, and is the caller's to clear. Of what it grew
// out of nothing is left.
func (p *pcapng) takeSecrets(b *block, n int) (lines []byte, err error) {
	for len(lines) < n {
		have, want := len(lines), min(n, max(2*len(lines), bufferSize))
		more := make([]byte, want)
		copy(more, lines)
		clear(lines)
		lines = more
		b.left -= uint32(want - have)
		if err := p.src.fill(lines[have:]); err != nil {
			return lines, p.cut(b, err)
		}
	}
	return lines, nil
}
