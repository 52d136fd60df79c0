// A library for LD_PRELOAD that has programs with OpenSSL 1.1.1 or later write a key log
// (RFC 9850) to the file that SSLKEYLOGFILE names. See docs/tls.md.
//
//   LD_PRELOAD=/usr/lib/libsheafkeylog.so SSLKEYLOGFILE=/run/sheaf-keys/log mosquitto
//
// It sets OpenSSL's own callback for that on a context when a connection is made of it. A
// program that has set one of its own keeps it. OpenSSL calls it when it begins to use a
// secret: a line is in the file before what it protects is written to the socket.
//
// For each line the file is opened, written to by one system call, and closed: about 10 us
// beside the 500 of a handshake. So rotation, removal, fork and threads need nothing more.
// What fails, fails silently: the program runs on, and its connections are not opened.
// No header of OpenSSL is needed, nor is it linked.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;
typedef void (*keylog_cb)(const SSL *, const char *);

static char path[PATH_MAX];

// At load, since the program may clear its environment later. A program with more
// privileges than its caller (setuid) has no such variable (secure_getenv(3)).
__attribute__((constructor)) static void begin(void)
{
	const char *p = secure_getenv("SSLKEYLOGFILE");
	if (p && strlen(p) < sizeof path)
		strcpy(path, p);
}

// Appends a line, unless others may read the file. Nothing waits: not for the reader of a
// pipe either.
static void append(const SSL *ssl, const char *line)
{
	(void)ssl;
	int before = errno;
	struct stat s;
	struct iovec whole[2] = {{(void *)line, strlen(line)}, {"\n", 1}};
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (fd >= 0) {
		if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && !(s.st_mode & S_IRWXO))
			while (writev(fd, whole, 2) < 0 && errno == EINTR)
				;
		close(fd);
	}
	errno = before;
}

// The function of that name in a loaded library and what it depends on.
static void *look(const char *library, const char *name)
{
	void *f = NULL, *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
	if (handle) {
		f = dlsym(handle, name);
		dlclose(handle); // it was there before
	}
	return f;
}

static int is_libssl(struct dl_phdr_info *o, size_t size, void *found)
{
	(void)size;
	const char *base = o->dlpi_name ? strrchr(o->dlpi_name, '/') : NULL;
	if (!base || strncmp(base, "/libssl.", 8) != 0 || strlen(o->dlpi_name) >= PATH_MAX)
		return 0;
	strcpy(found, o->dlpi_name);
	return 1;
}

// The function that the program would have called, were this library not there: the next
// one in its own order; or, where a module brought a libssl along for itself, as Python's
// does, the one that the caller's dependencies lead to. Where the caller is not on the
// stack, because it jumped here, it is that of the first libssl there is.
static void *next(const char *name, const void *caller, const void *own)
{
	Dl_info at;
	char libssl[PATH_MAX] = "";
	void *f = dlsym(RTLD_NEXT, name);
	if (!f && dladdr(caller, &at) && at.dli_fname)
		f = look(at.dli_fname, name);
	if ((!f || f == own) && dl_iterate_phdr(is_libssl, libssl))
		f = look(libssl, name);
	(void)dlerror(); // is the program's
	return f == own ? NULL : f;
}

SSL *SSL_new(SSL_CTX *ctx)
{
	const void *caller = __builtin_return_address(0), *own = (void *)SSL_new;
	SSL *(*real)(SSL_CTX *);
	keylog_cb (*get)(const SSL_CTX *);
	void (*set)(SSL_CTX *, keylog_cb);
	*(void **)&real = next("SSL_new", caller, own);
	*(void **)&get = next("SSL_CTX_get_keylog_callback", caller, own);
	*(void **)&set = next("SSL_CTX_set_keylog_callback", caller, own);
	if (ctx && *path && get && set && !get(ctx))
		set(ctx, append);
	return real ? real(ctx) : NULL;
}
