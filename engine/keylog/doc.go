// Package keylog holds the secrets of TLS connections, as key logs tell them (RFC 9850,
// the format of SSLKEYLOGFILE).
//
// A Store keeps them by the random of the connection's ClientHello, and is the
// seal.Source of a gateway. It is fed with text: by Add, from a capture; by its Writer,
// from a TLS server in this process; and by a Follower, from a file that grows. A
// connection that the Store is asked for and does not know has its Followers look into
// their files there and then: whoever writes a key log does so before what needs the
// secrets leaves the host, so that nothing is lost to waiting.
//
// A Follower follows a file through rotation, truncation, removal and its coming back. It
// refuses one that others may read. Where it empties what it has read, it does so by
// punching holes into the file (fallocate(2)): the bytes are gone, the blocks are free,
// and the length stays. Nothing that is written meanwhile can be lost, whoever writes and
// with whatever offset: a hole ends where the last whole line that was read ends. The
// length only grows, so other readers see zeros where lines were.
//
// Limits. A Store has a bound, past which the oldest connections give way. Truncation by
// others (logrotate's copytruncate) loses what was written between their copy and their
// cut. Of a file that is larger than 64 MiB when it is opened, only so much at its end
// is read. Secrets are cleared when they are dropped, and so are the buffers they were read
// with; what Go's runtime left of them on stacks that it moved is not.
package keylog
