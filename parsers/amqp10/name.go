package amqp10

import "sheaf/parsers"

// A Name is a message's kind: a performative, or a frame that has none.
type Name uint8

// The kinds of frames. The performatives are those of 2.7 and 5.3.3.
const (
	ProtocolHeader Name = iota + 1
	Empty               // keeps the connection alive (2.4.5)
	Performative        // of a kind that is not known, or not known yet
	Open
	Begin
	Attach
	Flow
	Transfer
	Disposition
	Detach
	End
	Close
	SASLMechanisms
	SASLInit
	SASLChallenge
	SASLResponse
	SASLOutcome

	numNames
)

// performatives is what each kind of frame is called, how its messages may wait
// and what its fields are, in their order.
var performatives = [numNames]struct {
	text   string
	class  parsers.Class
	fields []string
}{
	ProtocolHeader: {"protocol-header", parsers.ClassUrgent, nil},
	Empty:          {"empty", parsers.ClassUrgent, nil},
	Performative:   {"performative", parsers.ClassData, nil},
	Open: {"open", parsers.ClassUrgent, []string{"container-id", "hostname", "max-frame-size", "channel-max", "idle-time-out",
		"outgoing-locales", "incoming-locales", "offered-capabilities", "desired-capabilities", "properties"}},
	Begin: {"begin", parsers.ClassUrgent, []string{"remote-channel", "next-outgoing-id", "incoming-window", "outgoing-window",
		"handle-max", "offered-capabilities", "desired-capabilities", "properties"}},
	Attach: {"attach", parsers.ClassData, []string{"name", "handle", "role", "snd-settle-mode", "rcv-settle-mode", "source", "target",
		"unsettled", "incomplete-unsettled", "initial-delivery-count", "max-message-size", "offered-capabilities", "desired-capabilities", "properties"}},
	Flow: {"flow", parsers.ClassAck, []string{"next-incoming-id", "incoming-window", "next-outgoing-id", "outgoing-window", "handle",
		"delivery-count", "link-credit", "available", "drain", "echo", "properties"}},
	Transfer: {"transfer", parsers.ClassData, []string{"handle", "delivery-id", "delivery-tag", "message-format", "settled", "more",
		"rcv-settle-mode", "state", "resume", "aborted", "batchable"}},
	Disposition:    {"disposition", parsers.ClassAck, []string{"role", "first", "last", "settled", "state", "batchable"}},
	Detach:         {"detach", parsers.ClassData, []string{"handle", "closed", "error"}},
	End:            {"end", parsers.ClassUrgent, []string{"error"}},
	Close:          {"close", parsers.ClassUrgent, []string{"error"}},
	SASLMechanisms: {"sasl-mechanisms", parsers.ClassUrgent, []string{"sasl-server-mechanisms"}},
	SASLInit:       {"sasl-init", parsers.ClassUrgent, []string{"mechanism", "initial-response", "hostname"}},
	SASLChallenge:  {"sasl-challenge", parsers.ClassUrgent, []string{"challenge"}},
	SASLResponse:   {"sasl-response", parsers.ClassUrgent, []string{"response"}},
	SASLOutcome:    {"sasl-outcome", parsers.ClassUrgent, []string{"code", "additional-data"}},
}

// String returns the name as the specification writes it: "transfer".
func (n Name) String() string {
	if n >= numNames {
		return ""
	}
	return performatives[n].text
}

// performative returns the kind of a descriptor's number, in an AMQP frame or in
// a SASL one.
func performative(descriptor uint64, sasl bool) Name {
	switch {
	case !sasl && descriptor >= 0x10 && descriptor <= 0x18:
		return Open + Name(descriptor-0x10)
	case sasl && descriptor >= 0x40 && descriptor <= 0x44:
		return SASLMechanisms + Name(descriptor-0x40)
	}
	return Performative
}

// The counters that holes follow.
const (
	counterDelivery = 0 // delivery-id, of which each delivery in a session has the next
	counterTag      = 1 // delivery-tag, as a number or as text
	counterAck      = 2 // delivery-ids in a disposition
	counterChannel  = 3
)

// Protocol describes AMQP 1.0 to a Registry. Port 5671, AMQP over TLS, is not in
// it: there is nothing to see.
func Protocol() parsers.Protocol {
	list := make([]string, numNames)
	for i := range list {
		list[i] = performatives[i].text
	}
	return parsers.Protocol{
		Name:         "amqp10",
		Ports:        []uint16{5672},
		MessageNames: list,
		Probe:        Probe,
		New:          func(id parsers.ProtocolID) parsers.Scanner { return NewScanner(id) },
	}
}
