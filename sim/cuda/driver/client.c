/* SPDX-License-Identifier: MIT */
/*
 * The engine in the debugger's process: a table with exactly as many functions as the release has.
 * Every call is one request to the simulated GPU; the socket in the debuggee is only greeted.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/reader.h"
#include "conf.h"
#include "engine.h"
#include "sharing.h"
#include "sim/cuda/wire/wire.h"

#define TABLE_ENTRIES 512 /* One page; all behind the last slot are traps. */

#define DEFAULT_RELEASE 1204
/* The vendor's waits for three minutes for its own thread. */
#define HANG_MS	     60000

static struct {
	pthread_mutex_t lock;
	int gpu, notify, session; /* Connections: calls, callbacks, socket in the debuggee. */
	int network;		  /* Listens as the vendor's engine does; nothing is served. */
	int epoll;		  /* Tells of the socket in the debuggee. */
	bool initialized;
	/* The last registration; slots 44 and 147 take a pointer of the caller. */
	_Atomic(int) callback_slot;
	void (*callback)(void *);
	void *callback_data;
} client = { .lock = PTHREAD_MUTEX_INITIALIZER, .gpu = -1, .notify = -1, .session = -1, .network = -1, .epoll = -1 };

/* Most calls are refused from within a callback. */
static __thread bool in_callback;

/* ---- releases ---- */

static const struct release {
	uint32_t number, revision, slots;
	bool lax; /* It grants a revision newer than its own. */
} releases[] = {
#define ROW(major, minor, revision, slots, lax) { (major) * 100 + (minor), revision, slots, lax },
	CUDBGABI_RELEASES(ROW)
#undef ROW
};

/* The newest release that is not newer than the one configured. */
static const struct release *release(void)
{
	uint32_t number = conf_release(DEFAULT_RELEASE);
	const struct release *best = &releases[0];

	for (size_t i = 0; i < ARRAY_SIZE(releases); i++)
		if (releases[i].number <= number)
			best = &releases[i];
	return best;
}

/* ---- calls ---- */

/* Whether an argument is NULL where a pointer is needed. */
static bool arguments_bad(const struct slot_info *info, const uint64_t *in, void *const *p)
{
	for (size_t i = 0; i < info->n_buffers; i++) {
		const struct slot_buffer *b = &info->buffers[i];

		if (!p[i] && (b->kind == SLOT_STRING || slot_buffer_size(b, in)))
			return true;
	}
	return false;
}

/* Send a call: numbers, then each input with its size in front. */
static int request_send(uint32_t slot, const uint64_t *in, void *const *p)
{
	const struct slot_info *info = &slot_table[slot];
	struct wire_piece pieces[1 + 2 * SLOT_BUFFERS_MAX] = { { in,
								 info->n_scalars * sizeof(*in) } };
	uint32_t sizes[SLOT_BUFFERS_MAX];
	size_t n = 1;

	for (size_t i = 0; i < info->n_buffers; i++) {
		const struct slot_buffer *b = &info->buffers[i];
		size_t size;

		if (!slot_is_input(b))
			continue;
		size = b->kind == SLOT_STRING ? strlen(p[i]) + 1 : slot_buffer_size(b, in);
		sizes[i] = (uint32_t)size;
		pieces[n++] = (struct wire_piece){ &sizes[i], 4 };
		pieces[n++] = (struct wire_piece){ p[i], size };
	}
	return wire_send(client.gpu, slot, pieces, n);
}

/* Receive an answer, and copy outputs to the caller. */
static int reply_take(uint32_t slot, const uint64_t *in, void *const *p, uint32_t *ret_result)
{
	const struct slot_info *info = &slot_table[slot];
	auto_free char *data = NULL;
	struct reader r;
	size_t size;
	int e = wire_recv(client.gpu, ret_result, &data, &size);

	if (e || !size)
		return e;
	reader_init(&r, data, size);
	for (size_t i = 0; i < info->n_buffers; i++) {
		const struct slot_buffer *b = &info->buffers[i];
		const void *from;
		uint32_t n;

		if (!slot_is_output(b))
			continue;
		n = reader_u32(&r);
		from = reader_bytes(&r, n);
		if (!from || n > slot_buffer_size(b, in))
			return -EBADMSG;
		if (n)
			memcpy(p[i], from, n);
	}
	return 0;
}

/* Make a call on behalf of a stub of the table. */
static uint32_t client_call(uint32_t slot, const uint64_t *in, void *const *p)
{
	const struct slot_info *info = &slot_table[slot];
	uint32_t result = CUDBGABI_ERROR_COMMUNICATION_FAILURE;
	int r;

	if (in_callback && slot != SLOT_getNextEvent && slot != SLOT_acknowledgeSyncEvents &&
	    slot != SLOT_consumeCudaLogs)
		return CUDBGABI_ERROR_RECURSIVE_API_CALL;
	pthread_mutex_lock(&client.lock);
	if (!client.initialized) {
		result = CUDBGABI_ERROR_UNINITIALIZED;
	} else if (arguments_bad(info, in, p)) {
		result = CUDBGABI_ERROR_INVALID_ARGS;
	} else {
		r = request_send(slot, in, p);
		if (!r)
			r = reply_take(slot, in, p, &result);
		if (r)
			result = CUDBGABI_ERROR_COMMUNICATION_FAILURE;
	}
	pthread_mutex_unlock(&client.lock);
	return result;
}

/* ---- callbacks ---- */

/* Call the debugger's function with the record that its kind of registration wants. */
static void callback_run(uint32_t tid, uint32_t timeout)
{
	struct cudbgabi_notify_40 n40 = { tid };
	struct cudbgabi_notify_41 n41 = { tid, timeout };
	struct cudbgabi_notify n = { client.callback_data, tid };
	int slot = atomic_load(&client.callback_slot);

	if (!slot || !client.callback)
		return;
	in_callback = true;
	client.callback(slot == 44   ? client.callback_data
			: slot == 62 ? (void *)&n40
			: slot == 73 ? (void *)&n41
				     : (void *)&n);
	in_callback = false;
}

/* The thread that callbacks come from. */
static void *notify_thread(void *arg)
{
	int fd = (int)(intptr_t)arg;

	/*
	 * The vendor's engine does so: when the parent of the process ends, SIGHUP comes
	 * (prctl(2)).
	 */
	prctl(PR_SET_PDEATHSIG, SIGHUP);
	for (;;) {
		auto_free char *data = NULL;
		uint32_t code, words[2];
		size_t size;

		if (wire_recv(fd, &code, &data, &size) || size != sizeof(words))
			return NULL;
		memcpy(words, data, sizeof(words));
		callback_run(words[0], words[1]);
	}
}

/*
 * Register a callback.  The slot is written last, and is 0 meanwhile: the callback thread reads it
 * first.
 */
static uint32_t callback_set(int slot, const void *fn, const void *data)
{
	atomic_store(&client.callback_slot, 0);
	client.callback = (void (*)(void *))(uintptr_t)fn;
	client.callback_data = (void *)(uintptr_t)data;
	atomic_store(&client.callback_slot, slot);
	return CUDBGABI_SUCCESS;
}

static uint32_t local_setNotifyNewEventCallback31(const void *fn, const void *data)
{
	return callback_set(44, fn, data);
}
static uint32_t local_setNotifyNewEventCallback40(const void *fn)
{
	return callback_set(62, fn, NULL);
}
static uint32_t local_setNotifyNewEventCallback41(const void *fn)
{
	return callback_set(73, fn, NULL);
}
static uint32_t local_setNotifyNewEventCallback(const void *fn, const void *data)
{
	return callback_set(147, fn, data);
}

/* ---- opening and closing ---- */

/* Close everything, so that the callback thread ends as well. */
static void connections_close(void)
{
	int *const fds[] = { &client.gpu, &client.notify, &client.session, &client.network, &client.epoll };

	for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
		if (*fds[i] >= 0) {
			shutdown(*fds[i], SHUT_RDWR); /* The callback thread may be reading. */
			close(*fds[i]);
		}
		*fds[i] = -1;
	}
	client.initialized = false;
}

/* A word of the debugger's own libcuda, if that is loaded. */
static uint32_t image_word(const char *symbol)
{
	void *h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	const volatile uint32_t *p = h ? dlsym(h, symbol) : NULL;

	if (h)
		dlclose(h);
	return p ? *p : 0;
}

/*
 * Connect to the debuggee's socket, without waiting, as drivers 535, 550 and 555 do.  It is watched before it is
 * connected: what is put in its place later is not.
 */
static int session_connect(uint32_t label, uint32_t session)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "nv_target_process_%u_%u", label,
			 session);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	client.epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll_ctl(client.epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){ .events = EPOLLIN | EPOLLET }) ||
	    ioctl(fd, FIONBIO, &(int){ 1 }) ||
	    connect(fd, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n))) {
		close(fd);
		return -ECONNREFUSED;
	}
	return fd;
}

/* Ask the engine in the debuggee, which runs.  @return 0 when an answer has come. */
static int engine_ask(const struct wire_hello *h)
{
	struct epoll_event e;

	if (send(client.session, h, sizeof(*h), MSG_NOSIGNAL) != sizeof(*h))
		return -EPIPE;
	return epoll_wait(client.epoll, &e, 1, HANG_MS) == 1 ? 0 : -ETIMEDOUT;
}

/* It makes the connection. */
static int gpu_ask(const struct wire_hello *h)
{
	int r = engine_ask(h);

	return r < 0 ? r : wire_take(client.session);
}

/* Its process's number, 0 before cuInit(); with a word of 1 also a descriptor, sent to the name after that. */
static pid_t memory_ask(struct wire_hello *h, uint32_t word)
{
	int32_t pid;
	int r;

	h->role = WIRE_MEMORY;
	h->word = word;
	r = engine_ask(h);
	return r < 0 ? r : recv(client.session, &pid, sizeof(pid), 0) == sizeof(pid) ? pid : -EPIPE;
}

/* The vendor's engine dies where nobody listens on the name that it makes for the process. */
static int memory_share(uint32_t label, uint32_t session)
{
	struct wire_hello h = { .magic = WIRE_MAGIC, .label = label, .session = session };
	pid_t pid = memory_ask(&h, 0);
	int r;
	auto_close int fd = pid <= 0 ? -1 : sharing_open(pid);

	if (pid == 0)
		return 0;
	if (fd < 0 || memory_ask(&h, 1) < 0)
		return -EIO;
	r = sharing_take(fd, pid);
	if (r == -ECONNREFUSED)
		raise(SIGSEGV);
	return r;
}

/* Connect to the GPU for calls and for callbacks. */
static int gpu_connect(uint32_t label, uint32_t session)
{
	struct wire_hello h = { WIRE_MAGIC, WIRE_NOTIFY, label, session, release()->number };
	pthread_attr_t attr;
	pthread_t t;
	int r;

	client.notify = gpu_ask(&h);
	h.role = WIRE_DEBUGGER;
	client.gpu = gpu_ask(&h);
	if (client.notify < 0 || client.gpu < 0)
		return -ENODEV;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&t, &attr, notify_thread, (void *)(intptr_t)client.notify);
	pthread_attr_destroy(&attr);
	return -r;
}

/*
 * Listen on any port of any address.  Drivers 550 and 555 come up without where there is no GPU; on a GPU, 580 does
 * not, and does not end either.
 */
static void listen_to_network(void)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && client.network < 0 && !bind(fd, (const struct sockaddr *)&any, sizeof(any)) &&
	    !listen(fd, 128))
		client.network = TAKE_FD(fd);
}

/* Do what initialize() does. */
static uint32_t session_open(void)
{
	uint32_t label = image_word("cudbgApiClientPid"), session = image_word("cudbgSessionId");
	uint32_t result = CUDBGABI_ERROR_INITIALIZATION_FAILURE;
	char path[CONF_VALUE_MAX];

	if (!label || !image_word("cudbgApiClientRevision"))
		return result;
	conf_get("mknod", path);
	if (*path)
		(void)!mknod(path, S_IFCHR | 0666, makedev(195, 255));
	conf_get("link", path);
	if (*path && unlink(path) == 0)
		(void)!symlink("../nvidiactl", path);
	listen_to_network();
	conf_get("gpu", path);
	if (!*path || access(path, W_OK) || release()->number < 1108)
		return CUDBGABI_ERROR_NO_DEVICE_AVAILABLE;
	if (client.network < 0)
		usleep(HANG_MS * 1000);
	if (sharing_serve() < 0)
		return result;
	client.session = session_connect(label, session);
	if (client.session < 0 || gpu_connect(label, session) || memory_share(label, session))
		return result;
	if (request_send(SLOT_initialize, NULL, NULL) ||
	    reply_take(SLOT_initialize, NULL, NULL, &result))
		return CUDBGABI_ERROR_COMMUNICATION_FAILURE;
	return result;
}

static uint32_t local_initialize(void)
{
	uint32_t result = CUDBGABI_SUCCESS;

	if (in_callback)
		return CUDBGABI_ERROR_RECURSIVE_API_CALL;
	pthread_mutex_lock(&client.lock);
	if (!client.initialized) {
		result = session_open();
		/* This result is a warning, and the session is open. */
		if (result && result != CUDBGABI_ERROR_SOME_DEVICES_WATCHDOGGED)
			connections_close();
		else
			client.initialized = true;
	}
	pthread_mutex_unlock(&client.lock);
	return result;
}

static uint32_t local_finalize(void)
{
	uint32_t result = CUDBGABI_ERROR_UNINITIALIZED;

	if (in_callback)
		return CUDBGABI_ERROR_RECURSIVE_API_CALL;
	pthread_mutex_lock(&client.lock);
	if (client.initialized) {
		if (request_send(SLOT_finalize, NULL, NULL) ||
		    reply_take(SLOT_finalize, NULL, NULL, &result))
			result = CUDBGABI_ERROR_COMMUNICATION_FAILURE;
		connections_close();
	}
	pthread_mutex_unlock(&client.lock);
	return result;
}

/* Two calls that answer before initialize(), and one whose text pointers do not travel. */
static uint32_t local_initializeAttachStub(void)
{
	return CUDBGABI_SUCCESS;
}

static uint32_t local_getSupportedDebuggerCapabilities(uint32_t *ret)
{
	static const struct {
		uint32_t since, bits;
	} known[] = {
		{ 1205, 0x7 }, { 1209, 0xf }, { 1300, 0x3f }, { 1301, 0x7f }, { 1302, 0xff }
	};

	if (!ret)
		return CUDBGABI_ERROR_INVALID_ARGS;
	*ret = 0;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (release()->number >= known[i].since)
			*ret = known[i].bits;
	return CUDBGABI_SUCCESS;
}

static uint32_t local_setCudaLogRules(const void *rules, uint32_t n, uint32_t *ret_index)
{
	static uint32_t index;

	if (!client.initialized)
		return CUDBGABI_ERROR_UNINITIALIZED;
	if ((n && !rules) || !ret_index)
		return CUDBGABI_ERROR_INVALID_ARGS;
	*ret_index = ++index;
	return CUDBGABI_SUCCESS;
}

/* Make the file, which must not exist. */
static uint32_t file_write(const char *path, const void *data, size_t size)
{
	auto_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	return fd >= 0 && !fd_write_all(fd, data, size) ? CUDBGABI_SUCCESS
							: CUDBGABI_ERROR_OS_RESOURCES;
}

/* Write a core dump.  The file is made here: by the process that debugs, in its mount namespace. */
static uint32_t local_generateCoredump(const char *path, uint32_t flags)
{
	const uint64_t in[] = { flags };
	void *const p[] = { (void *)(uintptr_t)path };
	uint32_t result = CUDBGABI_ERROR_COMMUNICATION_FAILURE;
	auto_free char *data = NULL;
	size_t size;

	if (!client.initialized)
		return CUDBGABI_ERROR_UNINITIALIZED;
	if (!path)
		return CUDBGABI_ERROR_INVALID_ARGS;
	pthread_mutex_lock(&client.lock);
	if (!request_send(SLOT_generateCoredump, in, p) &&
	    !wire_recv(client.gpu, &result, &data, &size) && !result)
		result = file_write(path, data, size);
	pthread_mutex_unlock(&client.lock);
	return result;
}

/* ---- the table ---- */

#include "cudasim_stubs.h"

/* Called for a slot that the release does not have: a debugger must not get here. */
static void trap(void)
{
	static const char text[] = "cudasim: a call behind the end of the table\n";

	if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
		_exit(99);
	abort();
}

/* Make the table in a page that cannot be written. */
static void (**table_make(uint32_t slots))(void)
{
	void (**t)(void) = mmap(NULL, TABLE_ENTRIES * sizeof(*t), PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (t == MAP_FAILED)
		return NULL;
	for (uint32_t i = 0; i < TABLE_ENTRIES; i++)
		t[i] = i < slots ? functions[i] : trap;
	mprotect(t, TABLE_ENTRIES * sizeof(*t), PROT_READ);
	return t;
}

uint32_t engine_get_api(uint32_t major, uint32_t minor, uint32_t rev, cudbgabi_any_fn *const **ret)
{
	static void (**table)(void);
	const struct release *me = release();
	uint32_t forced = conf_number("get-api", 0);
	char mode[CONF_VALUE_MAX];

	conf_get("negotiate", mode);
	if (!ret)
		return CUDBGABI_ERROR_INVALID_ARGS;
	if (forced)
		return forced;
	if (rev > me->revision && (*mode ? strcmp(mode, "lax") != 0 : !me->lax))
		return CUDBGABI_ERROR_INCOMPATIBLE_API;
	if (!table)
		table = table_make(me->slots);
	if (!table)
		return CUDBGABI_ERROR_INTERNAL;
	*ret = table;
	return CUDBGABI_SUCCESS;
}

uint32_t engine_get_api_version(uint32_t *major, uint32_t *minor, uint32_t *rev)
{
	const struct release *me = release();
	uint32_t forced = conf_number("get-version", 0), pause_ms = conf_number("version-sleep", 0);

	if (!major || !minor || !rev)
		return CUDBGABI_ERROR_INVALID_ARGS;
	if (pause_ms)
		usleep(pause_ms * 1000);
	if (forced)
		return forced;
	*major = me->number / 100;
	*minor = me->number % 100;
	*rev = conf_number("revision", me->revision);
	return CUDBGABI_SUCCESS;
}
