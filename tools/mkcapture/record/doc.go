// Package record makes captures of real clients and real brokers without a network
// and without root: both run in this process, and speak through two TCP/IP stacks
// of gVisor's that a recorded cable joins.
//
//	client libraries -- stack --- cable --- stack -- forward -- broker
//	10.1.0.1, ...                   |       10.2.0.10           on loopback
//	                              capture
//
// Brokers are embedded: mochi's for MQTT, nats-server, miniredis. Another one, such
// as RabbitMQ, of which there is none to embed, is reached where it listens.
// For TLS, mosquitto is started beside, for its OpenSSL, or nats-server is asked for it;
// the capture then has the secrets, which the clients tell, in front of its packets.
// Publishers that belong beside the broker connect over loopback and are not
// recorded. The cable is recorded beside the broker, as raw IP.
//
// Time is the workload's. It stands still while the machine works: a packet takes
// 10 us, and when all that a message brings about has happened, time goes on to the
// next message. So a busy machine leaves no traces in a capture.
//
// # Limits
//
// In which order the copies of a message come is the machine's choice, so a capture
// made anew is not the same byte for byte. The stacks are gVisor's: timestamps,
// window scaling and selective acknowledgements are on, as with Linux;
// acknowledgements are not delayed. The cable has no delay of its own, and loses nothing
// where the workload does not say so. What brokers and clients do by their own clocks,
// such as the pings of nats-server, comes at odd times.
package record
