package keylog

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sheaf/netstack/certtest"
)

// The servers that docs/tls.md says were tried, each of which has its TLS from OpenSSL.
func TestServers(t *testing.T) {
	for name, command := range map[string]func(b *bench, port string) []string{
		"redis": func(b *bench, port string) []string {
			return []string{"redis-server", "--port", "0", "--tls-port", port, "--bind", "127.0.0.1", "--save", "", "--dir", b.folder,
				"--tls-cert-file", b.crt, "--tls-key-file", b.key, "--tls-ca-cert-file", b.crt, "--tls-auth-clients", "no"}
		},
		"nginx": func(b *bench, port string) []string {
			return []string{"nginx", "-e", "stderr", "-c", b.file("nginx.conf", fmt.Sprintf(`daemon off; user root; pid %[1]s/nginx.pid; error_log stderr; worker_processes 2;
events {}
http { access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
server { listen 127.0.0.1:%[2]s ssl; ssl_certificate %[3]s; ssl_certificate_key %[4]s; ssl_protocols TLSv1.2 TLSv1.3; } }
`, b.folder, port, b.crt, b.key))}
		},
		"haproxy": func(b *bench, port string) []string {
			both := b.file("both.pem", b.read(b.crt)+b.read(b.key))
			return []string{"haproxy", "-db", "-f", b.file("haproxy.cfg", fmt.Sprintf(`
defaults
    mode tcp
    timeout client 10s
    timeout connect 10s
    timeout server 10s
listen mqtt
    bind 127.0.0.1:%s ssl crt %s
    server broker 127.0.0.1:9
`, port, both))}
		},
		"stunnel": func(b *bench, port string) []string {
			return []string{"stunnel", b.file("stunnel.conf", fmt.Sprintf("foreground = yes\npid =\n[mqtt]\naccept = 127.0.0.1:%s\nconnect = 127.0.0.1:9\ncert = %s\nkey = %s\n", port, b.crt, b.key))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			address, port := freePort(t)
			args := command(b, port)
			b.serve(address, b.command(args[0], args[1:]...))
			for _, version := range versions {
				b.call(address, version)
			}
		})
	}
}

// file writes a file of the bench, and returns its path.
func (b *bench) file(name, text string) string {
	path := filepath.Join(b.folder, name)
	certtest.WriteFile(b.t, path, []byte(text))
	return path
}

// read returns what is in a file.
func (b *bench) read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		b.t.Fatal(err)
	}
	return string(text)
}
