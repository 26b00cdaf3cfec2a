/* SPDX-License-Identifier: MIT */
/*
 * libcudadebugger.so.1: the engine's exports, and its thread in the debuggee.
 *
 * The thread listens on the session's socket and keeps one connection to the simulated GPU, which
 * asks it for what only a running debuggee can do: replaying state at attach, finishing a detach.
 */
#include "engine.h"
#include "sharing.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "conf.h"
#include "sim/cuda/wire/wire.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT int InitializeInjection(uint64_t launch, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
EXPORT uint32_t GetCUDADebuggerAPI(uint32_t major, uint32_t minor, uint32_t rev,
				   cudbgabi_any_fn *const **ret);
EXPORT uint32_t GetCUDADebuggerAPIVersion(uint32_t *major, uint32_t *minor, uint32_t *rev);
extern const uint32_t nvInjectionVersion;
EXPORT const uint32_t nvInjectionVersion = 1;

uint32_t GetCUDADebuggerAPI(uint32_t major, uint32_t minor, uint32_t rev,
			    cudbgabi_any_fn *const **ret)
{
	return engine_get_api(major, minor, rev, ret);
}

uint32_t GetCUDADebuggerAPIVersion(uint32_t *major, uint32_t *minor, uint32_t *rev)
{
	return engine_get_api_version(major, minor, rev);
}

/* ---- variables of the debuggee's libcuda, whoever wrote that library ---- */

/* Find a variable; one that the driver does not have can be written without effect. */
static volatile uint32_t *variable(const char *name)
{
	static uint32_t nowhere;
	void *h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
	void *p = h ? dlsym(h, name) : NULL;

	if (h)
		dlclose(h);
	return p ? p : &nowhere;
}

/* ---- the thread ---- */

/* The engine of this process; a descriptor is -1 while it is not open. */
struct engine {
	int listener, gpu, epoll;
	uint32_t label, session;
	volatile uint32_t *ipc_flag, *initialized, *resume, *used;
};

static struct engine engine = { .listener = -1, .gpu = -1, .epoll = -1 };
static pthread_mutex_t engine_lock = PTHREAD_MUTEX_INITIALIZER;

/* Let the thread hear of a descriptor. */
static void watch(int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	epoll_ctl(engine.epoll, EPOLL_CTL_ADD, fd, &e);
}

/* Tell a debugger which process this is, and send it the descriptor if it wants that; 0: there is none yet. */
static void memory_input(int fd, uint32_t word)
{
	int32_t pid = sharing_is_served() && (!word || sharing_send() == 0) ? getpid() : 0;

	(void)!send(fd, &pid, sizeof(pid), MSG_NOSIGNAL);
}

/*
 * Give a client a connection to the GPU, as which it introduces itself: a debugger can open devices,
 * but may not connect to whom it likes.
 */
static void client_input(int fd)
{
	char path[CONF_VALUE_MAX];
	struct wire_hello h;
	int gpu;

	if (recv(fd, &h, sizeof(h), MSG_DONTWAIT) != sizeof(h) || h.magic != WIRE_MAGIC) {
		close(fd);
		return;
	}
	if (h.role == WIRE_MEMORY) {
		memory_input(fd, h.word);
		return;
	}
	conf_get("gpu", path);
	gpu = wire_connect(path, &h);
	wire_give(fd, gpu);
	if (gpu >= 0)
		close(gpu);
}

/* Answer a question of the GPU.  @return false if the engine shall end. */
static bool gpu_input(int fd)
{
	struct wire_piece answer = { (const void *)engine.ipc_flag, sizeof(uint32_t) };
	auto_free char *data = NULL;
	uint32_t code, words[2];
	size_t size;

	if (wire_recv(fd, &code, &data, &size)) {
		close(fd);
		return true;
	}
	/*
	 * The words are not set when the debugger took everything back while this thread was
	 * stopped.
	 */
	if (code == WIRE_ASK_SET && size == sizeof(words) && *engine.ipc_flag) {
		memcpy(words, data, sizeof(words));
		*engine.initialized = words[0];
		*engine.resume = words[1];
	}
	if (code == WIRE_ASK_LET_GO)
		*engine.used = 0;
	return code != WIRE_ASK_QUIT && (wire_send(fd, code, &answer, 1), true);
}

/* The thread serves until the GPU asks it to end; then a new session starts a new one. */
static void *engine_thread(void *arg)
{
	struct epoll_event e;

	pthread_setname_np(pthread_self(), "cuda-engine");
	for (;;) {
		if (epoll_wait(engine.epoll, &e, 1, -1) != 1)
			continue;
		if (e.data.fd == engine.listener)
			watch(accept4(engine.listener, NULL, NULL, SOCK_CLOEXEC));
		else if (e.data.fd != engine.gpu)
			client_input(e.data.fd);
		else if (!gpu_input(e.data.fd))
			break;
	}
	close(engine.listener);
	close(engine.gpu);
	close(engine.epoll);
	engine.listener = engine.gpu = engine.epoll = -1;
	return NULL;
}

/* Listen on the session's socket, where debuggers connect. */
static int listen_session(uint32_t label, uint32_t session)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "nv_target_process_%u_%u", label,
			 session);
	auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
	    listen(fd, 8))
		return -errno;
	return TAKE_FD(fd);
}

#define WORD_RELEASED	2u	/* What cudbgApiDetach() adds to the resume word. */

/*
 * Tell the GPU of the engine.  Its first answer is the resume word, or the result that the script
 * wants.
 */
static int gpu_register(uint32_t label, uint32_t session, bool launch, uint32_t *ret_resume)
{
	struct wire_hello h = { WIRE_MAGIC, WIRE_ENGINE, label, session,
				*variable("cudbgDebuggerCapabilities") |
					(launch ? UINT32_C(1) << 31 : 0) |
					(*engine.resume & WORD_RELEASED ? UINT32_C(1) << 30 : 0) };
	auto_free char *data = NULL;
	char path[CONF_VALUE_MAX];
	auto_close int fd = -1;
	uint32_t result;
	size_t size;

	*ret_resume = 0;
	conf_get("gpu", path);
	fd = *path ? wire_connect(path, &h) : -1;
	if (fd < 0)
		return 0; /* Without a GPU the engine comes up all the same. */
	if (wire_recv(fd, &result, &data, &size) || size != sizeof(*ret_resume))
		return CUDBGABI_ERROR_INTERNAL;
	memcpy(ret_resume, data, size);
	if (!result)
		engine.gpu = TAKE_FD(fd); /* The thread still holds the one before. */
	return (int)result;
}

/* Start the thread, or give it the socket of a new session. */
static int engine_start(uint32_t label, uint32_t session)
{
	int listener = listen_session(label, session), old = engine.listener;
	pthread_attr_t attr;
	pthread_t t;
	int r;

	if (listener < 0)
		return -CUDBGABI_ERROR_INITIALIZATION_FAILURE;
	engine.listener = listener;
	if (engine.epoll >= 0) {
		/* A debugger has detached before: the thread stayed. */
		close(old);
		watch(listener);
		return 0;
	}
	engine.epoll = epoll_create1(EPOLL_CLOEXEC);
	watch(listener);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&t, &attr, engine_thread, NULL);
	pthread_attr_destroy(&attr);
	return r ? -CUDBGABI_ERROR_OS_RESOURCES : 0;
}

#define RESULT_INACTIVE 0x10000 /* Agreed with the simulator: stay without effect. */
#define RESULT_FATAL	0x10001 /* The same: do what the vendor's engine does then, which is to crash. */

/* Do what InitializeInjection() does, under the lock. */
static int inject(bool launch)
{
	uint32_t label = *variable("cudbgApiClientPid"), session = *variable("cudbgSessionId"),
		 resume;
	int r = gpu_register(label, session, launch, &resume);

	if (r == RESULT_INACTIVE)
		return ENGINE_INACTIVE;
	if (r == RESULT_FATAL)
		raise(SIGSEGV);
	if (r)
		return -r;
	if (engine.epoll < 0 || label != engine.label || session != engine.session)
		r = engine_start(label, session);
	if (r)
		return r;
	engine.label = label;
	engine.session = session;
	if (engine.gpu >= 0)
		watch(engine.gpu);
	*engine.resume = resume;
	if (engine.gpu >= 0 && !resume)
		*engine.initialized = 1; /* There is nothing to replay. */
	*engine.used = 1;
	return 1;
}

int InitializeInjection(uint64_t launch, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	int r;

	pthread_mutex_lock(&engine_lock);
	engine.ipc_flag = variable("cudbgIpcFlag");
	engine.initialized = variable("cudbgDebuggerInitialized");
	engine.resume = variable("cudbgResumeForAttachDetach");
	engine.used = variable("cudbgUseExternalDebugger");
	r = inject(launch == ENGINE_LAUNCH);
	pthread_mutex_unlock(&engine_lock);
	return r;
}
