package amqp

import "strings"

// methods is every method with its arguments (1.1 to 1.8 of the specification's
// reference): a name and how it is written, 1, 2, 4, 8 for that many bytes, s
// for a short string, l for a long one, t for a table.
var methods = [...]struct {
	class, method uint16
	name          Name
	text          string
	arguments     string
}{
	{10, 10, ConnectionStart, "connection.start", "version-major:1 version-minor:1 server-properties:t mechanisms:l locales:l"},
	{10, 11, ConnectionStartOK, "connection.start-ok", "client-properties:t mechanism:s response:l locale:s"},
	{10, 20, ConnectionSecure, "connection.secure", "challenge:l"},
	{10, 21, ConnectionSecureOK, "connection.secure-ok", "response:l"},
	{10, 30, ConnectionTune, "connection.tune", "channel-max:2 frame-max:4 heartbeat:2"},
	{10, 31, ConnectionTuneOK, "connection.tune-ok", "channel-max:2 frame-max:4 heartbeat:2"},
	{10, 40, ConnectionOpen, "connection.open", "virtual-host:s capabilities:s insist:1"},
	{10, 41, ConnectionOpenOK, "connection.open-ok", "known-hosts:s"},
	{10, 50, ConnectionClose, "connection.close", "reply-code:2 reply-text:s class-id:2 method-id:2"},
	{10, 51, ConnectionCloseOK, "connection.close-ok", ""},
	{10, 60, ConnectionBlocked, "connection.blocked", "reason:s"},
	{10, 61, ConnectionUnblocked, "connection.unblocked", ""},
	{10, 70, ConnectionUpdateSecret, "connection.update-secret", "new-secret:l reason:s"},
	{10, 71, ConnectionUpdateSecretOK, "connection.update-secret-ok", ""},

	{20, 10, ChannelOpen, "channel.open", "out-of-band:s"},
	{20, 11, ChannelOpenOK, "channel.open-ok", "channel-id:l"},
	{20, 20, ChannelFlow, "channel.flow", "active:1"},
	{20, 21, ChannelFlowOK, "channel.flow-ok", "active:1"},
	{20, 40, ChannelClose, "channel.close", "reply-code:2 reply-text:s class-id:2 method-id:2"},
	{20, 41, ChannelCloseOK, "channel.close-ok", ""},

	{30, 10, AccessRequest, "access.request", "realm:s bits:1"}, // of 0-9, which clients still send
	{30, 11, AccessRequestOK, "access.request-ok", "ticket:2"},

	{40, 10, ExchangeDeclare, "exchange.declare", "ticket:2 exchange:s type:s bits:1 arguments:t"},
	{40, 11, ExchangeDeclareOK, "exchange.declare-ok", ""},
	{40, 20, ExchangeDelete, "exchange.delete", "ticket:2 exchange:s bits:1"},
	{40, 21, ExchangeDeleteOK, "exchange.delete-ok", ""},
	{40, 30, ExchangeBind, "exchange.bind", "ticket:2 destination:s source:s routing-key:s bits:1 arguments:t"},
	{40, 31, ExchangeBindOK, "exchange.bind-ok", ""},
	{40, 40, ExchangeUnbind, "exchange.unbind", "ticket:2 destination:s source:s routing-key:s bits:1 arguments:t"},
	{40, 51, ExchangeUnbindOK, "exchange.unbind-ok", ""},

	{50, 10, QueueDeclare, "queue.declare", "ticket:2 queue:s bits:1 arguments:t"},
	{50, 11, QueueDeclareOK, "queue.declare-ok", "queue:s message-count:4 consumer-count:4"},
	{50, 20, QueueBind, "queue.bind", "ticket:2 queue:s exchange:s routing-key:s bits:1 arguments:t"},
	{50, 21, QueueBindOK, "queue.bind-ok", ""},
	{50, 30, QueuePurge, "queue.purge", "ticket:2 queue:s bits:1"},
	{50, 31, QueuePurgeOK, "queue.purge-ok", "message-count:4"},
	{50, 40, QueueDelete, "queue.delete", "ticket:2 queue:s bits:1"},
	{50, 41, QueueDeleteOK, "queue.delete-ok", "message-count:4"},
	{50, 50, QueueUnbind, "queue.unbind", "ticket:2 queue:s exchange:s routing-key:s arguments:t"},
	{50, 51, QueueUnbindOK, "queue.unbind-ok", ""},

	{60, 10, BasicQos, "basic.qos", "prefetch-size:4 prefetch-count:2 global:1"},
	{60, 11, BasicQosOK, "basic.qos-ok", ""},
	{60, 20, BasicConsume, "basic.consume", "ticket:2 queue:s consumer-tag:s bits:1 arguments:t"},
	{60, 21, BasicConsumeOK, "basic.consume-ok", "consumer-tag:s"},
	{60, 30, BasicCancel, "basic.cancel", "consumer-tag:s no-wait:1"},
	{60, 31, BasicCancelOK, "basic.cancel-ok", "consumer-tag:s"},
	{60, 40, BasicPublish, "basic.publish", "ticket:2 exchange:s routing-key:s bits:1"},
	{60, 50, BasicReturn, "basic.return", "reply-code:2 reply-text:s exchange:s routing-key:s"},
	{60, 60, BasicDeliver, "basic.deliver", "consumer-tag:s delivery-tag:8 redelivered:1 exchange:s routing-key:s"},
	{60, 70, BasicGet, "basic.get", "ticket:2 queue:s no-ack:1"},
	{60, 71, BasicGetOK, "basic.get-ok", "delivery-tag:8 redelivered:1 exchange:s routing-key:s message-count:4"},
	{60, 72, BasicGetEmpty, "basic.get-empty", "cluster-id:s"},
	{60, 80, BasicAck, "basic.ack", "delivery-tag:8 multiple:1"},
	{60, 90, BasicReject, "basic.reject", "delivery-tag:8 requeue:1"},
	{60, 100, BasicRecoverAsync, "basic.recover-async", "requeue:1"},
	{60, 110, BasicRecover, "basic.recover", "requeue:1"},
	{60, 111, BasicRecoverOK, "basic.recover-ok", ""},
	{60, 120, BasicNack, "basic.nack", "delivery-tag:8 bits:1"},

	{85, 10, ConfirmSelect, "confirm.select", "no-wait:1"},
	{85, 11, ConfirmSelectOK, "confirm.select-ok", ""},

	{90, 10, TxSelect, "tx.select", ""},
	{90, 11, TxSelectOK, "tx.select-ok", ""},
	{90, 20, TxCommit, "tx.commit", ""},
	{90, 21, TxCommitOK, "tx.commit-ok", ""},
	{90, 30, TxRollback, "tx.rollback", ""},
	{90, 31, TxRollbackOK, "tx.rollback-ok", ""},
}

const (
	classConnection = 10
	classBasic      = 60
	maxClass        = 90
	maxMethod       = 120
)

// byNumber gives the name of a method by class and number, for those up to
// maxClass and maxMethod.
var byNumber = func() (list [maxClass + 1]*[maxMethod + 1]Name) {
	for i := range methods {
		m := &methods[i]
		if list[m.class] == nil {
			list[m.class] = new([maxMethod + 1]Name)
		}
		list[m.class][m.method] = m.name
	}
	return list
}()

// methodName returns the name of a method, and Method when there is none.
func methodName(class, method uint16) Name {
	if class <= maxClass && method <= maxMethod && byNumber[class] != nil {
		if n := byNumber[class][method]; n != 0 {
			return n
		}
	}
	return Method
}

// An argument is a field of a method or of a content header.
type argument struct {
	name string
	kind byte // '1', '2', '4', '8', 's', 'l' or 't', as in methods
}

func parseArguments(s string) (list []argument) {
	for field := range strings.FieldsSeq(s) {
		name, kind, _ := strings.Cut(field, ":")
		list = append(list, argument{name, kind[0]})
	}
	return list
}

// arguments is those of every method, by name.
var arguments = func() (list [numNames][]argument) {
	for i := range methods {
		list[methods[i].name] = parseArguments(methods[i].arguments)
	}
	return list
}()

// properties is what a content header may hold (4.2.6.1), the first announced by
// the highest bit of the property flags.
var properties = parseArguments("content-type:s content-encoding:s headers:t delivery-mode:1 priority:1 " +
	"correlation-id:s reply-to:s expiration:s message-id:s timestamp:8 type:s user-id:s app-id:s cluster-id:s")
