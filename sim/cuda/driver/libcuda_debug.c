/* SPDX-License-Identifier: MIT */
/*
 * The half of libcuda.so.1 that debuggers meet: variables, attach and detach, the way to the
 * table.  Which side writes what, and when, is what was measured on the vendor's drivers without a
 * GPU.  RELEASE (800, 1204, 1209, 1304) decides which symbols exist; the file is built once per
 * value.
 */
#include "libcuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "conf.h"
#include "engine.h"
#include "libcudbgshim/src/cudbg_abi.h"

#define ENGINE_NAME "libcudadebugger.so.1"
/* The high half of an internal error names a place inside the driver. */
#define PLACE UINT64_C(0x4143c00000000)

/* Declares and defines a variable that debuggers find by its name. */
#define VARIABLE(type, name)                                                                       \
	extern volatile type name;                                                                 \
	EXPORT volatile type name

VARIABLE(uint32_t, cudbgIpcFlag);
VARIABLE(uint32_t, cudbgRpcEnabled);
VARIABLE(uint32_t, cudbgApiClientPid);
VARIABLE(uint32_t, cudbgApiClientRevision);
VARIABLE(uint32_t, cudbgSessionId);
VARIABLE(uint32_t, cudbgDebuggerInitialized);
VARIABLE(uint32_t, cudbgResumeForAttachDetach);
VARIABLE(uint32_t, cudbgAttachHandlerAvailable);
VARIABLE(uint32_t, cudbgEnableLaunchBlocking);
VARIABLE(uint32_t, cudbgReportDriverApiErrorFlags);
VARIABLE(uint64_t, cudbgReportedDriverApiErrorCode);
VARIABLE(uint64_t, cudbgReportedDriverApiErrorFuncNameSize);
VARIABLE(uint64_t, cudbgReportedDriverApiErrorFuncNameAddr);
VARIABLE(uint64_t, cudbgReportedDriverInternalErrorCode);
#if RELEASE >= 1108
VARIABLE(uint32_t, cudbgDebuggerCapabilities);
VARIABLE(uint32_t, cudbgUseExternalDebugger);
extern char cudbgInjectionPath[CUDBGABI_INJECTION_PATH_SIZE];
EXPORT char cudbgInjectionPath[CUDBGABI_INJECTION_PATH_SIZE];
#endif
#if RELEASE >= 1209
VARIABLE(uint32_t, cudbgReportedDriverApiErrorSource);
VARIABLE(uint64_t, cudbgReportedDriverApiErrorNameSize);
VARIABLE(uint64_t, cudbgReportedDriverApiErrorNameAddr);
VARIABLE(uint64_t, cudbgReportedDriverApiErrorStringSize);
VARIABLE(uint64_t, cudbgReportedDriverApiErrorStringAddr);
#endif
#if RELEASE >= 1301
extern volatile int32_t cudbgInitiateDebuggerAttachProcedureFd;
EXPORT volatile int32_t cudbgInitiateDebuggerAttachProcedureFd = -1;
#else
VARIABLE(uint32_t, cudbgEnablePreemptionDebugging);
VARIABLE(uint32_t, cudbgEnableIntegratedMemcheck);
VARIABLE(uint32_t, cudbgDetachSuspendedDevicesMask);
#endif

EXPORT void cudbgApiInit(uint32_t word);
EXPORT void cudbgApiAttach(void);
EXPORT void cudbgApiDetach(void);
EXPORT void cudbgReportDriverApiError(void);
EXPORT void cudbgReportDriverInternalError(void);
EXPORT uint32_t cudbgGetAPI(uint32_t major, uint32_t minor, uint32_t rev,
			    cudbgabi_any_fn *const **table);
EXPORT uint32_t cudbgGetAPIVersion(uint32_t *major, uint32_t *minor, uint32_t *rev);

/* A function of bytes that do nothing: a debugger puts a breakpoint there. */
#define EMPTY(name)                                                                                \
	__attribute__((noinline)) void name(void)                                                  \
	{                                                                                          \
		__asm__ volatile(".rept 8\n\tnop\n\t.endr" ::: "memory");                      \
	}
EMPTY(cudbgReportDriverApiError)
EMPTY(cudbgReportDriverInternalError)
#if RELEASE >= 1301
EXPORT void cudbgPreInit(void);
EXPORT void cudbgReportAttachProcedureFinished(void);
EMPTY(cudbgPreInit)
EMPTY(cudbgReportAttachProcedureFinished)
#else
EXPORT int cudbgMain(int, uint32_t, int, int, int, int, int, int, int);

/* The entry of the classic agent, which this stand-in does not have. */
int cudbgMain(int pid, uint32_t rev, int session, int state, int event, int write_fd, int detach_fd,
	      int stub, int preemption)
{
	return -1;
}
#endif

/* ---- the engine ---- */

static pthread_mutex_t busy_lock = PTHREAD_MUTEX_INITIALIZER;

void cudasim_lock(void)
{
	pthread_mutex_lock(&busy_lock);
}

void cudasim_unlock(void)
{
	pthread_mutex_unlock(&busy_lock);
}

#if RELEASE >= 1108
static pthread_mutex_t engine_lock = PTHREAD_MUTEX_INITIALIZER;
static void *engine;

/* A debugger may name another engine. */
static const char *engine_path(void)
{
	return cudbgInjectionPath[0] ? cudbgInjectionPath : ENGINE_NAME;
}

/* Load the engine once. */
static void *engine_open(void)
{
	pthread_mutex_lock(&engine_lock);
	if (!engine)
		engine = dlopen(engine_path(), RTLD_NOW | RTLD_LOCAL);
	if (!engine)
		fprintf(stderr, "cudasim: debugger back-end not found: %s\n", dlerror());
	pthread_mutex_unlock(&engine_lock);
	return engine;
}

/*
 * Leave an internal error where a debugger looks, and call the function where it has its
 * breakpoint.
 */
static void report_internal(uint32_t result)
{
	cudbgReportedDriverInternalErrorCode = PLACE | result;
	cudbgReportDriverInternalError();
}

/* Whether an attach may go on; if not, the reason is left where a debugger looks. */
static bool attach_allowed(void)
{
	if (!(cudbgDebuggerCapabilities & CUDBGABI_CAPABILITY_LAZY_FUNCTION_LOADING)) {
		report_internal(CUDBGABI_ERROR_NOT_SUPPORTED);
		return false;
	}
	/* The classic agent and its directories are not simulated. */
	if (cudbgRpcEnabled) {
		report_internal(CUDBGABI_ERROR_OS_RESOURCES);
		return false;
	}
	if (cudbgUseExternalDebugger) {
		fprintf(stderr, "cudasim: debugging is not supported together with other developer "
				"tools\n");
		report_internal(CUDBGABI_ERROR_INITIALIZATION_FAILURE);
		return false;
	}
#if RELEASE < 1301
	if (cudbgEnablePreemptionDebugging) {
		report_internal(CUDBGABI_ERROR_ATTACH_NOT_POSSIBLE);
		return false;
	}
#endif
	return true;
}

/* Start the engine.  @return CUDBGResult. */
static uint32_t engine_inject(bool launch)
{
	engine_injection_fn *inject;
	void *e = engine_open();
	int r;

	inject = e ? (engine_injection_fn *)dlsym(e, "InitializeInjection") : NULL;
	if (!inject)
		return CUDBGABI_ERROR_INITIALIZATION_FAILURE;
	r = inject(launch ? ENGINE_LAUNCH : 0, 0, 0, 0, 0, 0);
	if (r < 0)
		return (uint32_t)-r; /* What the script wants; the vendor's engines never say so. */
	if (!r)
		return CUDBGABI_ERROR_INITIALIZATION_FAILURE;
	/*
	 * When an engine does not claim the process, the classic agent takes over and misses its
	 * directory.
	 */
	return cudbgUseExternalDebugger || r == ENGINE_INACTIVE ? CUDBGABI_SUCCESS
								: CUDBGABI_ERROR_OS_RESOURCES;
}

/* The thread that attaches; a debugger that stops the holder of the lock waits in vain. */
static void *attach_thread(void *arg)
{
	uint32_t result;

	cudasim_lock();
	result = engine_inject(false);
	cudasim_unlock();
	if (result)
		report_internal(result);
	return NULL;
}

static void attach(void)
{
	pthread_t t;

	/* Without the debugger's revision there is no debugger. */
	if (!cudbgApiClientRevision || !attach_allowed())
		return;
	/* A short-lived thread does it while the caller waits, as in the vendor's driver. */
	if (pthread_create(&t, NULL, attach_thread, NULL))
		report_internal(CUDBGABI_ERROR_OS_RESOURCES);
	else
		pthread_join(t, NULL);
}

/*
 * With a session on a GPU the debugger hears the engine out before the variable is cleared (measured with 580 on
 * an H200); without a debugger it stays.  Without a GPU it is cleared at once.
 */
void cudbgApiDetach(void)
{
	if (!cudbgUseExternalDebugger)
		return;
	cudbgResumeForAttachDetach |= 2;
	if (cudbgResumeForAttachDetach == 2)
		cudbgUseExternalDebugger = 0;
}

static void launch_path(void)
{
	uint32_t result;

	/* Only a program that a debugger started has its engine from cuInit on. */
	if (!cudbgIpcFlag)
		return;
	result = engine_inject(true);
	if (result) {
		report_internal(result);
		cudbgIpcFlag = 0;
	}
}
#else
/*
 * The classic driver has no engine library; the attach leaves only this trace when there is no RPC.
 */
static void attach(void)
{
	cudbgDebuggerInitialized = 1;
}

void cudbgApiDetach(void)
{
}

static void launch_path(void)
{
}
#endif

void cudbgApiAttach(void)
{
	attach();
}

void cudbgApiInit(uint32_t word)
{
	/* Other words are of the classic agent. */
	if (word == CUDBGABI_ATTACH_FULL || word == CUDBGABI_ATTACH_STUB)
		attach();
	else
		cudbgReportedDriverInternalErrorCode = PLACE | CUDBGABI_ERROR_INTERNAL;
}

/* ---- cuInit ---- */

#if RELEASE >= 1108
/* A number from the environment; 0 if it is not there. */
static uint32_t env_number(const char *name)
{
	const char *s = getenv(name);
	uint64_t n;

	return s && !str_to_u64(s, 0, UINT32_MAX, &n) ? (uint32_t)n : 0;
}
#endif

void debug_before_init(void)
{
#if RELEASE >= 1301
	cudbgPreInit();
#endif
#if RELEASE >= 1108
	/* A debugger that starts a program may leave the session in the environment. */
	if (env_number("CUDBG_GET_SESSION_FROM_ENV") != 1)
		return;
	cudbgIpcFlag = env_number("CUDBG_IPC_FLAG_NAME");
	cudbgApiClientPid = env_number("CUDBG_APICLIENT_PID");
	cudbgApiClientRevision = env_number("CUDBG_APICLIENT_REVISION");
	cudbgSessionId = env_number("CUDBG_SESSION_ID");
#endif
}

#if RELEASE >= 1301
/* The driver's interrupt handler: one byte in the pipe asks for an attach. */
static void *attach_handler(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char byte;

	for (;;) {
		ssize_t n = read(fd, &byte, 1);

		if (n == 1) {
			attach();
			cudbgReportAttachProcedureFinished();
		} else if (n == 0 || errno != EINTR) {
			return NULL;
		}
	}
}

static void attach_fd_open(void)
{
	pthread_attr_t a;
	pthread_t t;
	int fds[2];

	/* A debugger finds the writing end of the pipe through a variable. */
	if (pipe2(fds, O_CLOEXEC))
		return;
	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	if (!pthread_create(&t, &a, attach_handler, (void *)(intptr_t)fds[0]))
		cudbgInitiateDebuggerAttachProcedureFd = fds[1];
	pthread_attr_destroy(&a);
}
#else
static void attach_fd_open(void)
{
}
#endif

void debug_after_init(void)
{
	launch_path();
	attach_fd_open();
}

uint32_t debug_ipc_flag(void)
{
	return cudbgIpcFlag;
}

void debug_report_error(uint64_t result, const char *function, const char *name, const char *text)
{
	cudbgReportedDriverApiErrorCode = result;
	cudbgReportedDriverApiErrorFuncNameAddr = (uint64_t)(uintptr_t)function;
	cudbgReportedDriverApiErrorFuncNameSize = strlen(function);
#if RELEASE >= 1209
	cudbgReportedDriverApiErrorSource = CUDBGABI_API_ERROR_SOURCE_DRIVER;
	cudbgReportedDriverApiErrorNameAddr = (uint64_t)(uintptr_t)name;
	cudbgReportedDriverApiErrorNameSize = strlen(name);
	cudbgReportedDriverApiErrorStringAddr = (uint64_t)(uintptr_t)text;
	cudbgReportedDriverApiErrorStringSize = strlen(text);
#endif
	cudbgReportDriverApiError();
}

/* ---- the way to the table ---- */

#if RELEASE >= 1108
uint32_t cudbgGetAPI(uint32_t major, uint32_t minor, uint32_t rev, cudbgabi_any_fn *const **table)
{
	void *e = engine_open();
	cudbgabi_get_api_fn *get = e ? (cudbgabi_get_api_fn *)dlsym(e, "GetCUDADebuggerAPI") : NULL;

	return get ? get(major, minor, rev, table) : CUDBGABI_ERROR_INTERNAL;
}

uint32_t cudbgGetAPIVersion(uint32_t *major, uint32_t *minor, uint32_t *rev)
{
	void *e = engine_open();
	cudbgabi_get_api_version_fn *get =
		e ? (cudbgabi_get_api_version_fn *)dlsym(e, "GetCUDADebuggerAPIVersion") : NULL;

	return get ? get(major, minor, rev) : CUDBGABI_ERROR_INTERNAL;
}
#else
/*
 * The classic table lies inside libcuda; a client finds its version and nothing that it could use.
 */
uint32_t cudbgGetAPI(uint32_t major, uint32_t minor, uint32_t rev, cudbgabi_any_fn *const **table)
{
	return table ? engine_get_api(major, minor, rev, table) : CUDBGABI_ERROR_INVALID_ARGS;
}

uint32_t cudbgGetAPIVersion(uint32_t *major, uint32_t *minor, uint32_t *rev)
{
	return engine_get_api_version(major, minor, rev);
}
#endif
