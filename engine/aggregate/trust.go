package aggregate

import "sheaf/parsers"

// trust returns spans where they describe payload truly: their lengths add up,
// and every hole can be rebuilt from its number. Else it returns one opaque
// span: a scanner's mistake costs bytes, never correctness.
func trust(spans []parsers.Span, payload []byte) []parsers.Span {
	rest := payload
	for i := range spans {
		s := &spans[i]
		if s.Len <= 0 || s.Len > len(rest) || !trustHoles(s, rest[:s.Len]) {
			rest = payload
			spans = spans[:0]
			break
		}
		rest = rest[s.Len:]
	}
	if len(rest) == 0 {
		return spans
	}
	return append(spans[:0], parsers.OpaqueSpan(len(payload)))
}

func trustHoles(s *parsers.Span, b []byte) bool {
	if s.NumHoles > parsers.MaxHoles {
		return false
	}
	at := 0
	for k := range s.NumHoles {
		h := &s.Holes[k]
		if h.Off < at || h.Len < 0 || h.Off+h.Len > len(b) || h.Counter >= parsers.NumCounters || h.Step > 1 {
			return false
		}
		at = h.Off + h.Len
		if h.Len == 0 && h.Kind != parsers.HoleMask {
			return false
		}
		switch h.Kind {
		case parsers.HoleBig:
			if h.Len > 8 {
				return false
			}
		case parsers.HoleDecimal:
			if !parsers.IsDecimal(b[h.Off:at]) {
				return false
			}
		case parsers.HoleText:
			if h.Len > parsers.MaxHoleText || h.Step != 0 {
				return false
			}
		case parsers.HoleMask:
			if k > 0 || !trustMask(h, b) {
				return false
			}
		default:
			return false
		}
	}
	return true
}
