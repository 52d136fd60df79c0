// Package credentials is what a TLS server needs from files, read again when they change:
// its certificate and key, the authorities that sign those of its clients, and what these
// have revoked. It also remembers sessions.
//
//	certificate, key --+
//	client CA ---------+--> Credentials.Config: a *tls.Config for the next connection
//	revocation list ---+         VerifyConnection asks the list, WrapSession the memory
//
// Files that cannot be used when they are opened are an error. Later on they change
// nothing: what was there before goes on serving, and Faults says why.
//
// # Revocation
//
// With a list, each client's certificate needs a current one of its issuer (RFC 5280
// section 6.3): who is not known to be good is not let in, as with OpenSSL's CRL_CHECK,
// which brokers use. Lists are signed by certificates of the client CA file. Indirect and
// delta lists, and others with critical extensions, are not taken. Connections that are
// open when a certificate is revoked go on.
//
// # Sessions
//
// A ticket (RFC 8446 section 4.6.1, RFC 5077) is the number of a session that is kept
// here, not the session itself: with a client's certificate in it a ticket would have 2
// kB, which cross the link twice. Sessions are lost with the process, and forgotten when
// there are too many; their clients shake hands in full.
package credentials
