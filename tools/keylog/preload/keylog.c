// A library for LD_PRELOAD that has programs with OpenSSL 1.1.1 or later write a key log
// (RFC 9850) to the file that SSLKEYLOGFILE names. See docs/tls.md.
//
//   LD_PRELOAD=/usr/lib/libsheafkeylog.so SSLKEYLOGFILE=/run/sheaf-keys/log mosquitto
//
// It sets OpenSSL's own callback for that on a context when a connection is made of it, and
// calls the one that the program has set, if any. OpenSSL calls it when it begins to use a
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
#include <pthread.h>
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

// Appends a line, unless others may read the file. Nothing waits: not for the reader of a
// pipe either.
static void append(const char *line)
{
	struct stat s;
	struct iovec whole[2] = {{(void *)line, strlen(line)}, {"\n", 1}};
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	if (fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && !(s.st_mode & S_IRWXO))
		while (writev(fd, whole, 2) < 0 && errno == EINTR)
			;
	close(fd);
}

// The contexts for which the program had a callback of its own, HAProxy's for one. A
// context that was freed may stay: one that is made at its address begins without a
// callback, so that it comes through SSL_new before anybody looks for it here.
static struct { const SSL_CTX *ctx; keylog_cb cb; } others[64];
static size_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static keylog_cb other(const SSL_CTX *ctx)
{
	keylog_cb cb = NULL;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < count; i++)
		if (others[i].ctx == ctx)
			cb = others[i].cb;
	pthread_mutex_unlock(&lock);
	return cb;
}

// Says what the program's callback is, or that it has none. False where there is no room:
// then it keeps its own alone.
static int keep(const SSL_CTX *ctx, keylog_cb cb)
{
	size_t i = 0;
	pthread_mutex_lock(&lock);
	while (i < count && others[i].ctx != ctx)
		i++;
	int ok = i < count || !cb || count < sizeof others / sizeof *others;
	if (ok && (i < count || cb)) {
		others[i].ctx = ctx, others[i].cb = cb;
		count += i == count;
	}
	pthread_mutex_unlock(&lock);
	return ok;
}

// Takes a line. Secrets of exporters open no record, and protect what is not TLS.
static void log_line(const SSL *ssl, const char *line)
{
	int before = errno;
	if (!strstr(line, "EXPORTER"))
		append(line);
	SSL_CTX *(*context)(const SSL *);
	*(void **)&context = next("SSL_get_SSL_CTX", __builtin_return_address(0), NULL);
	keylog_cb cb = context ? other(context(ssl)) : NULL;
	errno = before;
	if (cb)
		cb(ssl, line);
}

// Has a context write the key log.
static void watch(SSL_CTX *ctx, const void *caller)
{
	keylog_cb (*get)(const SSL_CTX *);
	void (*set)(SSL_CTX *, keylog_cb);
	*(void **)&get = next("SSL_CTX_get_keylog_callback", caller, NULL);
	*(void **)&set = next("SSL_CTX_set_keylog_callback", caller, NULL);
	if (!ctx || !*path || !get || !set)
		return;
	keylog_cb cb = get(ctx);
	if (cb != log_line && keep(ctx, cb))
		set(ctx, log_line);
}

SSL *SSL_new(SSL_CTX *ctx)
{
	const void *caller = __builtin_return_address(0);
	SSL *(*real)(SSL_CTX *);
	*(void **)&real = next("SSL_new", caller, (void *)SSL_new);
	watch(ctx, caller);
	return real ? real(ctx) : NULL;
}

// A server with several certificates takes another context once it knows the name.
SSL_CTX *SSL_set_SSL_CTX(SSL *ssl, SSL_CTX *ctx)
{
	const void *caller = __builtin_return_address(0);
	SSL_CTX *(*real)(SSL *, SSL_CTX *);
	*(void **)&real = next("SSL_set_SSL_CTX", caller, (void *)SSL_set_SSL_CTX);
	watch(ctx, caller);
	return real ? real(ssl, ctx) : NULL;
}
