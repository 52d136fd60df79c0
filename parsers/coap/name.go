package coap

import "sheaf/parsers"

// A Name is a message's kind: the code, and for the empty message the type.
type Name uint8

// The names.
const (
	Ack Name = iota + 1
	Rst
	Ping // an empty Confirmable message, which asks for a Reset (4.3)

	GET
	POST
	PUT
	DELETE
	FETCH // RFC 8132
	PATCH
	IPATCH
	Request // of another method

	Content
	Notification // Content with an Observe option (RFC 7641)
	Created
	Deleted
	Valid
	Changed
	Continue // RFC 7959
	Success  // of another code
	ClientError
	NotFound
	ServerError
)

var names = [...]string{
	Ack: "ACK", Rst: "RST", Ping: "PING",
	GET: "GET", POST: "POST", PUT: "PUT", DELETE: "DELETE", FETCH: "FETCH", PATCH: "PATCH", IPATCH: "iPATCH", Request: "REQUEST",
	Content: "2.05 Content", Notification: "2.05 Notification", Created: "2.01 Created", Deleted: "2.02 Deleted",
	Valid: "2.03 Valid", Changed: "2.04 Changed", Continue: "2.31 Continue", Success: "2.xx Success",
	ClientError: "4.xx Client Error", NotFound: "4.04 Not Found", ServerError: "5.xx Server Error",
}

// String returns the name.
func (n Name) String() string {
	if int(n) >= len(names) {
		return ""
	}
	return names[n]
}

// codes gives the names of the codes (12.1), 0 for those of reserved classes.
var codes = func() (list [256]Name) {
	for code := range list {
		switch code >> 5 {
		case 0:
			list[code] = Request
		case 2:
			list[code] = Success
		case 4:
			list[code] = ClientError
		case 5:
			list[code] = ServerError
		}
	}
	list[0] = 0
	for i := range IPATCH - GET + 1 {
		list[1+i] = GET + i
	}
	for code, name := range map[uint8]Name{
		0x41: Created, 0x42: Deleted, 0x43: Valid, 0x44: Changed, 0x45: Content, 0x5f: Continue, 0x84: NotFound,
	} {
		list[code] = name
	}
	return list
}()

// The counters that fields follow. Acknowledgements and resets have the message
// IDs of the other side.
const (
	counterID      = 0
	counterToken   = 1
	counterObserve = 2
	counterAck     = 3
)

func (n Name) class() parsers.Class {
	switch n {
	case Ack, Rst:
		return parsers.ClassAck
	case Ping:
		return parsers.ClassUrgent
	}
	return parsers.ClassData
}

// Protocol describes CoAP to a Registry. Port 5684, CoAP over DTLS, is not in
// it: there is nothing to see.
func Protocol() parsers.Protocol {
	return parsers.Protocol{
		Name:         "coap",
		Ports:        []uint16{5683},
		UDP:          true,
		MessageNames: names[:],
		Probe:        Probe,
		New:          func(id parsers.ProtocolID) parsers.Scanner { return NewScanner(id) },
	}
}
