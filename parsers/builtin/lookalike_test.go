package builtin_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"sheaf/parsers"
	"sheaf/parsers/builtin"
)

// A lookalike is how connections or datagrams of a protocol begin that nobody here
// parses.
type lookalike struct {
	name    string
	payload string // hexadecimal after "x:", else as it is
}

// overTCP are those that are not pub-sub, and pub-sub protocols without a parser.
var overTCP = []lookalike{
	{"PCEP keepalive", "x:20020004"},
	{"PCEP open", "x:2001000c 01100008 20 1e 78 00"},
	{"two PCEP keepalives", "x:20020004 20020004"},
	{"BGP keepalive", "x:ffffffffffffffffffffffffffffffff 0013 04"},
	{"BGP open", "x:ffffffffffffffffffffffffffffffff 001d 01 04 fde8 00b4 0a000001 00"},
	{"LDP hello", "x:0001 0016 0a000001 0000 0100 000c 00000001 0400 0004 000f 0000"},
	{"SSH banner", "SSH-2.0-OpenSSH_9.6\r\n"},
	{"SSH key exchange", "x:0000002c 06 14 000102030405060708090a0b0c0d0e0f 00000011 637572766532353531392d736861323536 00000000"},
	{"HTTP GET", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"},
	{"HTTP POST", "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"},
	{"HTTP answer", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"},
	{"HTTP CONNECT", "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n"},
	{"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
	{"HTTP/2 settings", "x:000012 04 00 00000000 0003 00000064 0004 00010000 0002 00000000"},
	{"HTTP/2 ping", "x:000008 06 00 00000000 0102030405060708"},
	{"RTSP", "OPTIONS rtsp://a/b RTSP/1.0\r\nCSeq: 1\r\n\r\n"},
	{"SIP", "OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/TCP a\r\nContent-Length: 0\r\n\r\n"},
	{"SMTP banner", "220 mx.example.net ESMTP\r\n"},
	{"SMTP", "EHLO a.example.net\r\n"},
	{"SMTP quit", "QUIT\r\n"},
	{"POP3 banner", "+OK POP3 ready\r\n"},
	{"POP3 answer", "+OK\r\n"},
	{"POP3 user", "USER joe\r\n"},
	{"IMAP banner", "* OK IMAP4rev1 ready\r\n"},
	{"IMAP", "a1 LOGIN joe secret\r\n"},
	{"FTP banner", "220 (vsFTPd 3.0.5)\r\n"},
	{"NNTP", "GROUP comp.lang.go\r\n"},
	{"IRC", "NICK joe\r\nUSER joe 0 * :joe\r\n"},
	{"IRC ping", "PING :irc.example.net\r\n"},
	{"IRC pong", "PONG irc.example.net\r\n"},
	{"telnet", "x:fffd18fffd20fffd23fffd27"},
	{"VNC", "RFB 003.008\n"},
	{"RDP", "x:0300 0013 0e e0 0000 0000 00 0100 0800 03000000"},
	{"S7", "x:0300 0016 11 e0 0000 0001 00 c0010a c1020100 c2020102"},
	{"SMB 1", "x:00000023 ff534d42 72 00000000 18 4348 0000 000000000000000000000000 ffff fffe 0000 0000"},
	{"SMB 2", "x:00000040 fe534d42 4000 0000 00000000 0000 1f00"},
	{"NetBIOS session", "x:81000044 20 43414341434143414341434143414341434143414341434143414341434143"},
	{"LDAP bind", "x:300c 0201 01 6007 0201 03 0400 8000"},
	{"LDAP answer", "x:300c 0201 01 6107 0a01 00 0400 0400"},
	{"LDAP search", "x:3025 0201 02 6320 0400 0a0100 0a0100 020100 020100 010100 870b 6f626a656374436c617373 3000"},
	{"Kerberos", "x:0000000e 6a0c 300a a103 020105 a203 02010a"},
	{"DNS", "x:001d 1234 0100 0001 0000 0000 0000 07 6578616d706c65 03 6e6574 00 0001 0001"},
	{"DNS answer", "x:002d 1234 8180 0001 0001 0000 0000 07 6578616d706c65 03 6e6574 00 0001 0001 c00c 0001 0001 00000e10 0004 0a000001"},
	{"PostgreSQL startup", "x:00000029 00030000 7573657200 706f73746772657300 646174616261736500 706c616e7400 00"},
	{"PostgreSQL wants TLS", "x:00000008 04d2162f"},
	{"PostgreSQL query", "x:51 0000000d 73656c656374 20 313b 00"},
	{"PostgreSQL authenticated", "x:52 00000008 00000000 5a 00000005 49"},
	{"MySQL greeting", "x:4a000000 0a 382e302e333300 0b000000 4f4b5a3b1c2d3e4f 00 ffff ff 0200 ffdf 15 00000000000000000000 3c5d2a1b4c3d2e1f0a0b0c0d 00 63616368696e675f7368613200"},
	{"MySQL query", "x:09000000 03 73656c6563742031"},
	{"MS SQL", "x:1201 002f 0000 0100 0000 1a 0006 01 0020 0001 02 0021 0001 03 0022 0004 04 0026 0001 ff 1100 0000 0000 00 00000000 00"},
	{"Oracle", "x:003a 0000 01 00 0000 013a 012c 0c41 2000 7fff 4f98 0000 0001"},
	{"MongoDB", "x:28000000 01000000 00000000 dd070000 00000000 00 13000000 10 69734d617374657200 01000000 00"},
	{"Cassandra", "x:04 00 0000 05 00000000"},
	{"Cassandra startup", "x:04 00 0001 01 00000016 0001 000b 43514c5f56455253494f4e 0005 332e302e30"},
	{"ZooKeeper", "x:0000002d 00000000 0000000000000000 00007530 0000000000000000 00000010 00000000000000000000000000000000 00"},
	{"ZooKeeper ping", "x:00000008 fffffffe 0000000b"},
	{"Elasticsearch", "x:4553 00000017 0000000000000001 08 006ac983 0000"},
	{"memcached get", "get a.key\r\n"},
	{"memcached set", "set a.key 0 60 5\r\nhello\r\n"},
	{"memcached stored", "STORED\r\n"},
	{"memcached end", "END\r\n"},
	{"memcached binary", "x:80 00 0005 00 00 0000 00000005 00000000 0000000000000000 68656c6c6f"},
	{"beanstalkd", "put 1024 0 60 5\r\nhello\r\n"},
	{"beanstalkd reserved", "RESERVED 7 5\r\nhello\r\n"},
	{"Gearman", "x:00524551 00000001 00000007 72657665727365"},
	{"NSQ", "  V2"},
	{"NSQ SUB", "SUB events plant\n"},
	{"NSQ PUB", "PUB events\n\x00\x00\x00\x05hello"},
	{"NSQ answer", "x:00000006 00000000 4f4b"},
	{"NSQ message", "x:00000023 00000002 15dfe7a9a5a3c5d6 0001 30613134633261356231633030303030 68656c6c6f"},
	{"Pulsar connect", "x:00000014 00000010 08 02 12 0c 0a06 322e31302e30 20 0f 3132"},
	{"Pulsar ping", "x:00000009 00000005 0812 9201 00"},
	{"Pulsar send", "x:00000029 0000000d 08 06 32 09 0800 1001 1801 2001 28 0e01 1a2b3c4d 00000008 0a03 702d31 1001 18 68656c6c6f"},
	{"OpenWire", "x:000000fa 01 4163746976654d51 0000000c 01 000000e8 0000000c 0011 53746163 6b547261636545"},
	{"OpenWire keep-alive", "x:00000005 0a 00000000"},
	{"Artemis core", "x:00000013 1e 0000000000000000 00000000 01 00000000 00"},
	{"SBE over TCP", "x:0010 cafe 0001 0002 0003 0004 0000 0001"},
	{"FIX", "8=FIX.4.4\x019=65\x0135=A\x0149=A\x0156=B\x0134=1\x0152=20240102-03:04:05\x0198=0\x01108=30\x0110=062\x01"},
	{"Diameter", "x:01 000044 80 000101 00000000 00000001 00000001 00000108 4000000d 612e6578 00000000 00000128 4000000a 6e657400"},
	{"RADIUS over TCP", "x:01 2a 0014 00112233445566778899aabbccddeeff"},
	{"Modbus", "x:0001 0000 0006 01 03 0000 000a"},
	{"Modbus answer", "x:0001 0000 0007 01 03 04 00010002"},
	{"IEC 104", "x:6804 07000000"},
	{"IEC 104 measurement", "x:6812 0200 0400 0d 01 03 00 0100 010400 0000a040 00"},
	{"DNP3", "x:0564 05 c0 0100 0004 e921"},
	{"OPC UA hello", "x:48454c46 38000000 00000000 ffff0000 ffff0000 00000000 00000000 18000000 6f70632e7463703a2f2f706c616e743a34383430 2f616263"},
	{"EtherNet/IP", "x:6500 0400 00000000 00000000 0000000000000000 00000000 0100 0000"},
	{"ISO 8583", "x:0030 0800 8220000000000000 0400000000000000 0102030405 000001 3031"},
	{"DICOM", "x:0100 000000cd 0001 0000 414e592d534350 202020202020202020"},
	{"HL7", "\x0bMSH|^~\\&|A|B|C|D|20240102||ADT^A01|1|P|2.3\r\x1c\r"},
	{"Thrift", "x:0000001c 80010001 00000004 70696e67 00000001 00"},
	{"Avro RPC", "x:00000001 00000001 00000010 c3c1c1b2"},
	{"SOCKS 5", "x:050100"},
	{"SOCKS 4", "x:0401 0050 0a000001 6100"},
	{"BitTorrent", "\x13BitTorrent protocol\x00\x00\x00\x00\x00\x10\x00\x05"},
	{"RTMP", "x:03 00000000 00000000 0a1b2c3d4e5f"},
	{"XMPP", "<?xml version='1.0'?><stream:stream to='a' xmlns='jabber:client' version='1.0'>"},
	{"JSON lines", "{\"method\":\"mining.subscribe\",\"id\":1}\n"},
	{"Graphite", "plant.4.temperature 21.5 1700000000\n"},
	{"InfluxDB lines", "weather,location=here temperature=82 1465839830100400200\n"},
	{"syslog", "<34>1 2024-01-02T03:04:05Z host app - - - hello\n"},
	{"rsync", "@RSYNCD: 31.0\n"},
	{"git", "0032git-upload-pack /a.git\x00host=example.net\x00"},
	{"X11", "x:6c00 0b00 0000 0000 0000 0000"},
	{"NFS", "x:80000028 00000001 00000000 00000002 000186a3 00000004 00000000 00000000 00000000 00000000 00000000"},
	{"iSCSI", "x:0387 0000 00000000 00023d000000 0000 00000001"},
	{"STUN over TCP", "x:0001 0000 2112a442 000102030405060708090a0b"},
	{"OpenVPN", "x:000e 38 0102030405060708 00 00000000"},
	{"WireGuard over TCP", "x:0094 01000000 0102030405060708"},
	{"Redis cluster bus", "RCmb\x00\x00\x00\x50\x00\x01\x18\xeb"},
	{"Tarantool", "Tarantool 2.11.0 (Binary)\n"},
	{"RabbitMQ streams, properties", "x:0000003b 0011 0001 00000001 00000002 0007 70726f64756374 000f 5261626269744d512053747265616d 0008 706c6174666f726d 0004 4a617661"},
	{"RabbitMQ streams, SASL handshake", "x:00000008 0012 0001 00000002"},
	{"RabbitMQ streams, SASL", "x:0000001f 0013 0001 00000003 0005 504c41494e 0000000c 006775657374006775657374"},
	{"RabbitMQ streams, tune", "x:0000000c 0014 0001 00100000 0000003c"},
	{"RabbitMQ streams, open", "x:0000000b 0015 0001 00000004 0001 2f"},
	{"RabbitMQ streams, heartbeat", "x:00000004 0017 0001"},
	{"RabbitMQ streams, create", "x:00000018 000d 0001 00000005 0008 6d657472696373 31 00000000 0000"},
	{"RabbitMQ streams, delete", "x:00000012 000e 0001 00000006 0008 6d657472696373 31"},
	{"RabbitMQ streams, stored offset", "x:0000001b 000b 0001 00000007 0007 726561646572 31 0008 6d657472696373 31"},
	{"RabbitMQ streams, metadata", "x:00000016 000f 0001 00000008 00000001 0008 6d657472696373 31"},
	{"RabbitMQ streams, publisher", "x:0000001a 0001 0001 00000009 01 0005 7075622d31 0008 6d657472696373 31"},
	{"RabbitMQ streams, subscribe", "x:0000001a 0007 0001 0000000a 02 0008 6d657472696373 31 0001 000a 0000"},
	{"RabbitMQ streams, publish", "x:0000001a 0002 0001 01 00000001 0000000000000001 00000005 68656c6c6f"},
	{"RabbitMQ streams, store offset", "x:0000001d 000a 0001 0007 726561646572 31 0008 6d657472696373 31 00000000000003e8"},
	{"RabbitMQ streams, an answer", "x:0000000a 8015 0001 00000004 0001"},
	{"RabbitMQ streams, close", "x:00000010 0016 0001 0000000b 0001 0004 646f6e65"},
	{"zeroes", "x:" + strings.Repeat("00", 64)},
	{"a counter", "x:00000001 00000002 00000003 00000004"},
}

// overUDP are those that come in datagrams.
var overUDP = []lookalike{
	{"DNS", "x:1234 0100 0001 0000 0000 0000 07 6578616d706c65 03 6e6574 00 0001 0001"},
	{"mDNS", "x:0000 8400 0000 0001 0000 0000 05 706c616e74 05 6c6f63616c 00 0001 8001 00000078 0004 0a000001"},
	{"NTP", "x:1b0006fa 00000000 00000000 00000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000"},
	{"NTP client, version 4", "x:23000000 00000000 00000000 00000000 0000000000000000 0000000000000000 0000000000000000 e8f0b3d1a2c4d5e6"},
	{"SNMP", "x:302602010104067075626c6963a019020426d4a1b20201000201 00300b300906052b060102010500"},
	{"DHCP", "x:01010600 3903f326 0000 0000 00000000 00000000 00000000 00000000 020000000001"},
	{"TFTP", "x:0001 612e747874 00 6f63746574 00"},
	{"RADIUS", "x:012a0026 00112233445566778899aabbccddeeff 0105 6a6f65 020d 0102030405060708090a0b"},
	{"IKE", "x:0102030405060708 0000000000000000 21 20 22 08 00000000 00000020 00000004"},
	{"SIP", "OPTIONS sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP a\r\nContent-Length: 0\r\n\r\n"},
	{"RTP", "x:8060 1234 00000001 deadbeef 0102030405060708"},
	{"RTCP", "x:80c8 0006 deadbeef e8f0b3d1a2c4d5e6 00000001 00000001 00000010"},
	{"STUN", "x:0001 0000 2112a442 000102030405060708090a0b"},
	{"STUN with software", "x:0001 0010 2112a442 000102030405060708090a0b 8022 000b 636c69656e742d312e3233 00"},
	{"DTLS", "x:16feff 0000 000000000000 0036 01 00002a 0000 000000 00002a fefd"},
	{"QUIC", "x:c0 00000001 08 0102030405060708 00 00 449e"},
	{"WireGuard", "x:01000000 01020304 05060708090a0b0c0d0e0f10"},
	{"OpenVPN", "x:38 0102030405060708 00 00000000"},
	{"VXLAN", "x:08000000 00002a00 020000000002 020000000001 0800 4500"},
	{"GTP", "x:32 01 0004 00000000 0001 0000"},
	{"L2TP", "x:c802 0014 0000 0000 0000 0000 8008 0000 0000 0001"},
	{"syslog", "<34>1 2024-01-02T03:04:05Z host app - - - hello"},
	{"StatsD", "plant.4.temperature:21|g"},
	{"SSDP", "M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\n\r\n"},
	{"BACnet", "x:810b000c 0120ffff 00ff 1008"},
	{"KNXnet/IP", "x:06100201 000e 08 01 c0a80001 0e57"},
	{"SOME/IP", "x:00640001 00000010 00000001 01010200 0102030405060708"},
	{"RTPS", "x:52545053 0203 0101 0102030405060708090a0b0c 0e01 0c00"},
	{"NetFlow", "x:0009 0001 00000001 00000002 00000003 00000004 0000 0014"},
	{"memcached", "x:0001 0000 0001 0000 67657420612e6b6579 0d0a"},
	{"Modbus", "x:0001 0000 0006 01 03 0000 000a"},
	{"Kademlia", "d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe"},
	{"LwM2M in JSON", "{\"n\":\"/3303/0/5700\",\"v\":21.5}"},
	{"zeroes", "x:" + strings.Repeat("00", 32)},
}

func (l *lookalike) bytes(t *testing.T) []byte {
	t.Helper()
	digits, isHex := strings.CutPrefix(l.payload, "x:")
	if !isHex {
		return []byte(l.payload)
	}
	b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
	if err != nil {
		t.Fatalf("%s: %v", l.name, err)
	}
	return b
}

// TestLookalikes holds that on ports that say nothing no probe takes what another
// protocol begins with for its own, whole or cut anywhere.
func TestLookalikes(t *testing.T) {
	reg := builtin.Registry()
	for _, list := range []struct {
		udp  bool
		like []lookalike
	}{{false, overTCP}, {true, overUDP}} {
		for _, l := range list.like {
			whole := l.bytes(t)
			for id := range reg.Names()[1:] {
				p := reg.Protocol(parsers.ProtocolID(id + 1))
				if p.UDP != list.udp {
					continue
				}
				for n := len(whole); n > 0; n-- {
					if p.Probe(slices.Clone(whole[:n])) == parsers.Strong {
						t.Errorf("%s: the first %d of %d bytes are taken for %s", l.name, n, len(whole), p.Name)
						break
					}
				}
			}
		}
	}
}
