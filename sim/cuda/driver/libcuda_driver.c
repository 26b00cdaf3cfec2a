/* SPDX-License-Identifier: MIT */
/*
 * The half of libcuda.so.1 that programs call: each driver call is one line to the simulated GPU.
 */
#include "libcuda.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "conf.h"
#include "sharing.h"
#include "sim/cuda/wire/wire.h"

/* Values of CUresult, as far as they are needed. */
#define OK              0u
#define INVALID_VALUE   1u
#define NOT_INITIALIZED 3u
#define NO_DEVICE       100u
#define NOT_FOUND       500u
#define UNKNOWN         999u

#define LINE_MAX_SIZE 1024

EXPORT uint32_t cuInit(uint32_t flags);
EXPORT uint32_t cuDriverGetVersion(int *version);
EXPORT uint32_t cuDeviceGetCount(int *count);
EXPORT uint32_t cuDeviceGet(int *device, int ordinal);
EXPORT uint32_t cuDeviceGetName(char *name, int size, int device);
EXPORT uint32_t cuCtxCreate_v2(void **context, uint32_t flags, int device);
EXPORT uint32_t cuCtxDestroy_v2(void *context);
EXPORT uint32_t cuCtxSynchronize(void);
EXPORT uint32_t cuModuleLoadData(void **module, const void *image);
EXPORT uint32_t cuModuleUnload(void *module);
EXPORT uint32_t cuModuleGetFunction(void **function, void *module, const char *name);
EXPORT uint32_t cuLaunchKernel(void *f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx,
			       uint32_t by, uint32_t bz, uint32_t shared, void *stream,
			       void **params, void **extra);
EXPORT uint32_t cuMemAlloc_v2(uint64_t *address, size_t size);
EXPORT uint32_t cuMemFree_v2(uint64_t address);
EXPORT uint32_t cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size);

static struct {
	pthread_mutex_t lock;
	int fd;
	bool up;
} driver = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* The context that modules and memory belong to. */
static __thread void *current;

/* The CUresult for an errno, with which the simulator answers. */
static uint32_t cu_result(uint32_t error)
{
	switch (error) {
	case 0:
		return OK;
	case EINVAL:
	case ERANGE:
		return INVALID_VALUE;
	case ENODEV:
		return NO_DEVICE;
	case ENOENT:
		return NOT_FOUND;
	default:
		return UNKNOWN;
	}
}

/* Send a line and wait for the answer, which may take until a debugger acknowledges events. */
static uint32_t transact(const char *line, const void *blob, size_t size, char **ret)
{
	const struct wire_piece pieces[] = { { line, strlen(line) + 1 }, { blob, size } };
	auto_free char *data = NULL;
	uint32_t result;
	size_t n;

	if (wire_send(driver.fd, debug_ipc_flag(), pieces, 2) ||
	    wire_recv(driver.fd, &result, &data, &n))
		return UNKNOWN;
	if (ret)
		*ret = TAKE_PTR(data);
	return cu_result(result);
}

uint32_t cudasim_command(const char *line, const void *blob, size_t size, char **ret)
{
	uint32_t result = NO_DEVICE;

	pthread_mutex_lock(&driver.lock);
	if (driver.fd >= 0)
		result = transact(line, blob, size, ret);
	pthread_mutex_unlock(&driver.lock);
	/* Debuggers may have a breakpoint on failed driver calls. */
	if (result)
		debug_report_error(result, "cudasim_command", "CUDA_ERROR_SIMULATED", line);
	return result;
}

/* Send a formatted line, and read a number out of the answer if one is wanted. */
__attribute__((format(printf, 4, 5))) static uint32_t ask(const void *blob, size_t size,
							  uint64_t *ret, const char *fmt, ...)
{
	auto_free char *text = NULL;
	char line[LINE_MAX_SIZE];
	uint32_t result;
	va_list ap;

	if (!driver.up)
		return NOT_INITIALIZED;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	result = cudasim_command(line, blob, size, &text);
	if (!result && ret && (!text || str_to_u64_any(text, ret)))
		result = UNKNOWN;
	return result;
}

static int tid(void)
{
	return (int)syscall(SYS_gettid);
}

/* Connect to the GPU, once. */
static uint32_t connect_gpu(void)
{
	const struct wire_hello h = { .magic = WIRE_MAGIC, .role = WIRE_APP };
	char path[CONF_VALUE_MAX];

	if (driver.fd >= 0)
		return OK;
	conf_get("gpu", path);
	driver.fd = *path ? wire_connect(path, &h) : -1;
	return driver.fd < 0 ? NO_DEVICE : OK;
}

uint32_t cuInit(uint32_t flags)
{
	uint32_t result;

	if (flags)
		return INVALID_VALUE;
	if (driver.up)
		return OK;
	debug_before_init();
	result = connect_gpu();
	if (!result && sharing_serve() < 0)
		result = NO_DEVICE;
	/* The engine is started also when there is no device. */
	debug_after_init();
	driver.up = !result;
	return result;
}

uint32_t cuDriverGetVersion(int *version)
{
	uint32_t release = conf_release(1204);

	if (!version)
		return INVALID_VALUE;
	*version = (int)(release / 100 * 1000 + release % 100 * 10);
	return OK;
}

uint32_t cuDeviceGetCount(int *count)
{
	uint64_t n;
	uint32_t r = ask(NULL, 0, &n, "count");

	if (!r)
		*count = (int)n;
	return r;
}

uint32_t cuDeviceGet(int *device, int ordinal)
{
	int n;
	uint32_t r = cuDeviceGetCount(&n);

	if (r)
		return r;
	if (ordinal < 0 || ordinal >= n)
		return INVALID_VALUE;
	*device = ordinal;
	return OK;
}

uint32_t cuDeviceGetName(char *name, int size, int device)
{
	if (!name || size <= 0)
		return INVALID_VALUE;
	snprintf(name, (size_t)size, "Simulated GPU %d", device);
	return OK;
}

uint32_t cuCtxCreate_v2(void **context, uint32_t flags, int device)
{
	uint64_t handle;
	uint32_t r = ask(NULL, 0, &handle, "context %d tid=%d", device, tid());

	if (!r)
		*context = current = (void *)(uintptr_t)handle;
	return r;
}

uint32_t cuCtxDestroy_v2(void *context)
{
	return ask(NULL, 0, NULL, "context-destroy %p", context);
}

uint32_t cuCtxSynchronize(void)
{
	return ask(NULL, 0, NULL, "nothing");
}

/*
 * The size of an ELF file, which knows where it ends: behind its section headers or its program
 * headers.
 */
static size_t elf_size(const uint8_t *e)
{
	uint64_t shoff, phoff, end, segments;
	uint16_t shentsize, shnum, phentsize, phnum;

	memcpy(&phoff, e + 32, 8);
	memcpy(&shoff, e + 40, 8);
	memcpy(&phentsize, e + 54, 2);
	memcpy(&phnum, e + 56, 2);
	memcpy(&shentsize, e + 58, 2);
	memcpy(&shnum, e + 60, 2);
	end = shoff + (uint64_t)shentsize * shnum;
	segments = phoff + (uint64_t)phentsize * phnum;
	return (size_t)(end > segments ? end : segments);
}

uint32_t cuModuleLoadData(void **module, const void *image)
{
	uint64_t handle;
	uint32_t r;

	if (!image || memcmp(image, "\177ELF", 4))
		return INVALID_VALUE;
	r = ask(image, elf_size(image), &handle, "module %p", current);
	if (!r)
		*module = (void *)(uintptr_t)handle;
	return r;
}

uint32_t cuModuleUnload(void *module)
{
	return ask(NULL, 0, NULL, "module-unload %p", module);
}

uint32_t cuModuleGetFunction(void **function, void *module, const char *name)
{
	uint64_t handle;
	uint32_t r = ask(NULL, 0, &handle, "function %p %s", module, name);

	if (!r)
		*function = (void *)(uintptr_t)handle;
	return r;
}

uint32_t cuLaunchKernel(void *f, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
			uint32_t bz, uint32_t shared, void *stream, void **params, void **extra)
{
	return ask(NULL, 0, NULL, "launch %p grid=%u,%u,%u block=%u,%u,%u shared=%u tid=%d", f, gx,
		   gy, gz, bx, by, bz, shared, tid());
}

uint32_t cuMemAlloc_v2(uint64_t *address, size_t size)
{
	return ask(NULL, 0, address, "alloc %p %zu", current, size);
}

uint32_t cuMemFree_v2(uint64_t address)
{
	return ask(NULL, 0, NULL, "free 0x%llx", (unsigned long long)address);
}

uint32_t cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size)
{
	return ask(from, size, NULL, "write 0x%llx", (unsigned long long)to);
}
