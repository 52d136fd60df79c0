package parsers

// AddHole adds a hole where there is room. Holes are added in the order of their
// offsets.
func (sp *Span) AddHole(off, length int, kind HoleKind, counter, step uint8) {
	if sp.NumHoles == MaxHoles {
		return
	}
	h := &sp.Holes[sp.NumHoles] // field by field: a Hole made elsewhere is slow to copy
	h.Off = off
	h.Len = length
	h.Kind = kind
	h.Counter = counter
	h.Step = step
	sp.NumHoles++
}
