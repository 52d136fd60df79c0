package engine

import (
	"errors"
	"strings"
	"testing"
)

// Each mistake about a TLS server that the gateway is itself is told by its place.
func TestFrontMistakes(t *testing.T) {
	const whole = `[[tls]]
server = ["10.2.0.10:8883"]
to = "127.0.0.1:1883"
certificate = "server.crt"
private_key = "server.key"
client_ca = "ca.crt"
client_auth = "request"
crl = "ca.crl"
alpn = ["mqtt"]
proxy = true
`
	without := func(keys ...string) string {
		var b strings.Builder
	lines:
		for line := range strings.Lines(whole) {
			for _, k := range keys {
				if strings.HasPrefix(line, k+" = ") {
					continue lines
				}
			}
			b.WriteString(line)
		}
		return b.String()
	}
	all := []string{"to", "certificate", "private_key", "client_ca", "client_auth", "crl", "alpn", "proxy"}
	only := func(key, value string) string { return without(all...) + key + " = " + value + "\n" }
	userspace := func(terminate string) func(string) string {
		return func(text string) string {
			return strings.Replace(text, "[tun]\naddress = [\"10.99.0.1/24\", \"fd99::1/64\"]\n", terminate, 1)
		}
	}
	asIs := func(text string) string { return text }
	tests := []struct {
		name   string
		tables string
		change func(string) string
		want   string
	}{
		{"all", whole, asIs, ""},
		{"the least", without("client_ca", "client_auth", "crl", "alpn", "proxy"), asIs, ""},
		{"to alone", only("to", `"127.0.0.1:1883"`), asIs, "[[tls]] 1: to needs certificate"},
		{"private_key alone", only("private_key", `"k"`), asIs, "private_key needs certificate"},
		{"client_ca alone", only("client_ca", `"c"`), asIs, "client_ca needs certificate"},
		{"client_auth alone", only("client_auth", `"require"`), asIs, "client_auth needs certificate"},
		{"crl alone", only("crl", `"c"`), asIs, "crl needs certificate"},
		{"alpn alone", only("alpn", `["mqtt"]`), asIs, "alpn needs certificate"},
		{"proxy alone", only("proxy", `true`), asIs, "proxy needs certificate"},
		{"no key", without("private_key"), asIs, "private_key is missing"},
		{"no to", without("to"), asIs, "to is missing"},
		{"to", strings.Replace(whole, "127.0.0.1:1883", "localhost:1883", 1), asIs, `to = "localhost:1883": expected ADDR:PORT`},
		{"to port 0", strings.Replace(whole, "127.0.0.1:1883", "127.0.0.1:0", 1), asIs, "expected ADDR:PORT"},
		{"client_auth", strings.Replace(whole, `"request"`, `"maybe"`, 1), asIs, `client_auth = "maybe": expected require or request`},
		{"client_auth without client_ca", without("client_ca", "crl"), asIs, "client_auth needs client_ca"},
		{"crl without client_ca", without("client_ca", "client_auth"), asIs, "crl needs client_ca"},
		{"alpn empty", strings.Replace(whole, `["mqtt"]`, `["mqtt", ""]`, 1), asIs, "alpn: \"\" is not 1 to 255 bytes long"},
		{"alpn 255", strings.Replace(whole, "mqtt", strings.Repeat("m", 255), 1), asIs, ""},
		{"alpn 256", strings.Replace(whole, "mqtt", strings.Repeat("m", 256), 1), asIs, "is not 1 to 255 bytes long"},
		{"userspace", whole, userspace("[terminate]\nprefixes = [\"10.2.0.0/24\"]\n"), ""},
		{"userspace elsewhere", whole, userspace("[terminate]\nprefixes = [\"10.3.0.0/24\"]\n"), "server 10.2.0.10:8883 is in no prefix of [terminate]"},
		{"userspace mapped", whole, userspace("[terminate]\nprefixes = [\"10.2.0.0/24\"]\nmap = { \"10.2.0.10:8883\" = \"127.0.0.1:1884\" }\n"), "is in the map of [terminate] as well"},
		{"only forward", whole, userspace("[[forward]]\nfrom = \"tcp:127.0.0.1:1883\"\nto = \"10.1.0.10:1883\"\n"), "is in no prefix of [terminate]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			text := tt.change(good(t) + tt.tables)
			if strings.Contains(text, "[[forward]]") {
				text = "address = [\"10.99.0.1\"]\n" + text
			}
			_, err := ParseConfig([]byte(text))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (!errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, expected %q in it", err, tt.want)
			}
		})
	}
}
