// Package keylog has no Go code but tests, of the library in preload/ that has programs
// with OpenSSL write a key log. `make preload` builds it.
package keylog
