// Package e2e tests the built program on a network of its own: real brokers and
// clients, two or more gateways with TUN devices, and a WAN between them that is
// measured, narrowed, delayed or cut.
//
// Every machine is a network namespace, every cable a veth pair:
//
//	clients ---- gwA ---+                           +--- gwB ---- broker
//	10.1.0.0/16         |                           |             10.2.0.10
//	fd00:1::/64         +--- wan: bridge or relay --+             fd00:2::10
//	                    |
//	clients3 --- gwC ---+    clients, gwA: as many sites as a test wants
//	10.3.0.0/16
//
//	lan cables   172.16.K.1/30 at the gateway, 172.16.K.2/30 behind it
//	wan          192.0.2.K/24, fd00:ff::K/64
//	inside       10.99.0.K/24, fd00:99::K/64, the gateways' own addresses
//
// A LAN's machine answers for every address of its prefix, so that one process
// can be hundreds of hosts. The WAN is a kernel bridge, its ports shaped by tbf
// where a test wants a rate; where it wants delay, loss or a filter, it is a
// process that carries frames between two ports. Bytes on the WAN are what the
// kernel counts at the gateway's interface, less the 14 bytes of each Ethernet
// header; offloads are off there, so that a packet counted is a packet sent.
//
// The processes inside, publishers, subscribers, the relay, are this package's
// test binary run anew with a role (TestMain). What they measure they write to
// their output as JSON. All clocks are one machine's.
//
// The brokers are Debian's: mosquitto, nats-server, redis-server and RabbitMQ, each
// started by its test in the namespace of its LAN, with configuration and files of
// its own. The system's services, if there are any, are neither used nor touched.
//
// Virtual machines are real ones, in QEMU: the kernel of Debian's linux-image-cloud-amd64,
// downloaded and not installed, and an initramfs that the test writes, whose only program is
// sheaf/e2e/guest. A test tells it over a serial port what to do, as sheaf/e2e/order
// describes. KVM is used where it is usable; otherwise QEMU emulates, and a guest takes
// 3 s to boot, and some hundred microseconds for what a host does in ten. A guest has a NIC at
// a port of each kind, and uses one at a time, so that it need be booted only once.
//
// For TLS each test makes an authority and certificates of its own. Key logs are on
// /dev/shm, and are written by the broker, with the library in tools/keylog/preload that has
// OpenSSL do so, or by the clients beside their gateway where the broker has no OpenSSL.
//
// The tests need root, and the Debian packages mosquitto, mosquitto-clients,
// nats-server, redis-server, rabbitmq-server, iproute2, ethtool, tcpdump,
// iputils-ping, traceroute, iperf3, nftables and qemu-system-x86: make e2e installs them.
// What guests boot is fetched from Debian's archive by the tests.
// They are skipped unless E2E is 1 in the environment, or quick for shorter
// measurements; then it is a failure if something is missing. E2E_SHEAF names a
// program to test instead of the one that is built, E2E_QEMU an emulator instead of
// qemu-system-x86_64.
//
// # Limits
//
// The figures are those of one machine that does everything, clients and broker
// included, and shares its cores: bounds on time are loose, bounds on bytes and
// on what arrives are not. What README claims that a delivery takes is read from
// its table, and a measurement may be 1.3 times that. Where the machine stands
// still for more than 100 ms in all of five attempts, a test is skipped that is
// over its limits: it could not judge.
package e2e
