package websocket

import "bytes"

// maxUpgrade bounds the HTTP heads that are believed.
const maxUpgrade = 64 << 10

// An upgrade is the HTTP request or answer that a connection begins with.
type upgrade struct {
	size      int    // bytes, 0 when its end is not there
	websocket bool   // it is for WebSocket
	protocols []byte // what Sec-WebSocket-Protocol says; borrowed
}

// http says whether bytes begin like the head of a request or answer; no frame
// does. It returns short where they are too few to tell.
func http(b []byte) fault {
	for _, want := range [...]string{"GET /", "HTTP/1.1 101 "} {
		switch n := min(len(b), len(want)); {
		case n == 0:
			return short
		case string(b[:n]) != want[:n]:
		case n < len(want):
			return short
		default:
			return ok
		}
	}
	return faultHTTP
}

// parseUpgrade reads an HTTP head (4.1, 4.2.2) into u. It returns short when its
// end is not there; u then has what was seen.
func parseUpgrade(b []byte, u *upgrade) fault {
	*u = upgrade{}
	if bad := http(b); bad != ok {
		return bad
	}
	at := 0
	for {
		n := bytes.IndexByte(b[at:min(len(b), maxUpgrade)], '\n')
		switch {
		case n < 0 && len(b) >= maxUpgrade:
			return faultHTTP
		case n < 0:
			return short
		}
		line := b[at : at+n]
		at += n + 1
		if len(bytes.TrimLeft(line, "\r")) == 0 {
			break
		}
		u.field(line)
	}
	u.size = at
	if !u.websocket {
		return faultUpgrade
	}
	return ok
}

// field takes in a header field that tells something.
func (u *upgrade) field(line []byte) {
	i := bytes.IndexByte(line, ':')
	if i < 0 {
		return
	}
	name, value := line[:i], bytes.TrimSpace(line[i+1:])
	switch {
	case bytes.EqualFold(name, []byte("Upgrade")):
		u.websocket = u.websocket || bytes.EqualFold(value, []byte("websocket"))
	case bytes.EqualFold(name, []byte("Sec-WebSocket-Protocol")):
		u.protocols = value
	}
}

// speaks says whether one of the protocols begins with a name.
func (u *upgrade) speaks(name string) bool {
	for list := u.protocols; len(list) > 0; {
		token, rest, _ := bytes.Cut(list, []byte(","))
		token = bytes.TrimSpace(token)
		if len(token) >= len(name) && bytes.EqualFold(token[:len(name)], []byte(name)) {
			return true
		}
		list = rest
	}
	return false
}
