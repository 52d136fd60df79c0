package amqp

import "sheaf/parsers"

// A Name is a message's kind: a method, or a frame that stands by itself.
type Name uint8

// The frames that are no methods, or stand alone. Where a content header or
// content body follows its method they all bear the method's name.
const (
	ProtocolHeader Name = iota + 1
	Heartbeat
	Method // of a kind that is not known, or not known yet
	ContentHeader
	ContentBody
)

// The methods.
const (
	ConnectionStart Name = iota + ContentBody + 1
	ConnectionStartOK
	ConnectionSecure
	ConnectionSecureOK
	ConnectionTune
	ConnectionTuneOK
	ConnectionOpen
	ConnectionOpenOK
	ConnectionClose
	ConnectionCloseOK
	ConnectionBlocked
	ConnectionUnblocked
	ConnectionUpdateSecret
	ConnectionUpdateSecretOK
	ChannelOpen
	ChannelOpenOK
	ChannelFlow
	ChannelFlowOK
	ChannelClose
	ChannelCloseOK
	AccessRequest
	AccessRequestOK
	ExchangeDeclare
	ExchangeDeclareOK
	ExchangeDelete
	ExchangeDeleteOK
	ExchangeBind
	ExchangeBindOK
	ExchangeUnbind
	ExchangeUnbindOK
	QueueDeclare
	QueueDeclareOK
	QueueBind
	QueueBindOK
	QueuePurge
	QueuePurgeOK
	QueueDelete
	QueueDeleteOK
	QueueUnbind
	QueueUnbindOK
	BasicQos
	BasicQosOK
	BasicConsume
	BasicConsumeOK
	BasicCancel
	BasicCancelOK
	BasicPublish
	BasicReturn
	BasicDeliver
	BasicGet
	BasicGetOK
	BasicGetEmpty
	BasicAck
	BasicReject
	BasicRecoverAsync
	BasicRecover
	BasicRecoverOK
	BasicNack
	ConfirmSelect
	ConfirmSelectOK
	TxSelect
	TxSelectOK
	TxCommit
	TxCommitOK
	TxRollback
	TxRollbackOK

	numNames
)

var names = func() (list [numNames]string) {
	copy(list[:], []string{
		ProtocolHeader: "protocol-header", Heartbeat: "heartbeat", Method: "method",
		ContentHeader: "content-header", ContentBody: "content-body",
	})
	for i := range methods {
		list[methods[i].name] = methods[i].text
	}
	return list
}()

// String returns the name as the specification writes it: "basic.deliver".
func (n Name) String() string {
	if n >= numNames {
		return ""
	}
	return names[n]
}

// HasContent says whether a content header and body follow the method.
func (n Name) HasContent() bool {
	return n == BasicPublish || n == BasicDeliver || n == BasicReturn || n == BasicGetOK
}

// classes is how messages may wait, by name.
var classes = func() (list [numNames]parsers.Class) {
	list[ProtocolHeader] = parsers.ClassUrgent
	list[Heartbeat] = parsers.ClassUrgent
	for n := ConnectionStart; n <= ChannelOpenOK; n++ {
		list[n] = parsers.ClassUrgent
	}
	for _, n := range [...]Name{BasicAck, BasicNack, BasicReject} {
		list[n] = parsers.ClassAck
	}
	return list
}()

// The counters that holes follow. Numbers and texts of a counter do not meet.
const (
	counterDelivery = 0 // delivery tags, of which each delivery on a channel has the next
	counterConsumer = 1 // as text the consumer tag, as a number the size of the frame it is in
	counterAck      = 2 // delivery tags that are acknowledged
	counterChannel  = 3
)

// Protocol describes AMQP 0-9-1 to a Registry. Port 5671, AMQP over TLS, is not
// in it: there is nothing to see.
func Protocol() parsers.Protocol {
	return parsers.Protocol{
		Name:         "amqp",
		Ports:        []uint16{5672},
		SecurePorts:  []uint16{5671},
		MessageNames: names[:],
		Probe:        Probe,
		New:          func(id parsers.ProtocolID) parsers.Scanner { return NewScanner(id) },
	}
}
