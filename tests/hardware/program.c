/* SPDX-License-Identifier: MIT */
/*
 * gpu_check_program: one of the kernels of this directory, started by the driver API alone, so that it needs no
 * compiler and no CUDA runtime where it runs.
 *
 * usage: gpu_check_program --kernel spin|diverge|fault --image CUBIN --status-file PATH [--stop-at STAGE]
 *
 * Stages, signals, output and status file are those of common.cuh.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/hardware/words.h"

/* Values of the driver's CUresult. */
#define NOT_READY 600

/* Flags of cuMemHostAlloc: for all contexts, mapped into the device. */
#define HOST_ALLOC 3u

typedef int result;

/* What is used of the driver, by the names of its symbols. */
static struct {
	result (*cuInit)(unsigned);
	result (*cuDeviceGet)(int *, int);
	result (*cuDevicePrimaryCtxRetain)(void **, int);
	result (*cuCtxSetCurrent)(void *);
	result (*cuMemHostAlloc)(void **, size_t, unsigned);
	result (*cuMemAlloc_v2)(uint64_t *, size_t);
	result (*cuMemcpyHtoD_v2)(uint64_t, const void *, size_t);
	result (*cuModuleLoadData)(void **, const void *);
	result (*cuModuleGetFunction)(void **, void *, const char *);
	result (*cuLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
				 void **, void **);
	result (*cuStreamQuery)(void *);
	result (*cuGetErrorName)(result, const char **);
} cu;

static const struct kernel {
	const char *name, *symbol;
	unsigned blocks, threads;
	size_t planted; /* bytes of global memory that are known; what the kernel writes is behind them */
} kernels[] = {
	{ "spin", "spin", 8, 128, 2048 },
	{ "diverge", "_Z7divergeIfEvP12shared_wordsPT_", 4, 64, 4096 },
	{ "fault", "fault", 2, 64, 2048 },
};

static struct hardware_status *status;
static struct shared_words *words; /* NULL until there is a context */
static volatile sig_atomic_t n_go, is_ready, is_ended;
static const char *stop_at = "", *status_path, *image_path;
static const struct kernel *kernel;

static void on_go(int sig)
{
	n_go++;
	if (is_ready)
		words->fault = 1;
}

static void on_end(int sig)
{
	is_ended = 1;
	if (words)
		words->stop = 1;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void *beat(void *arg)
{
	uint64_t last = now_ns();

	for (;;) {
		uint64_t now = now_ns(), sum = 0;
		struct timespec pause = { 0, 500000 };

		if (now - last > status->max_gap_ns)
			status->max_gap_ns = now - last;
		last = now;
		for (int i = 0; words && i < SLOTS; i++)
			sum += words->progress[i];
		status->progress = sum;
		status->beats++;
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Leave with a message where a call of the system failed. */
static void *need(void *p, const char *what)
{
	if (!p || p == MAP_FAILED) {
		perror(what);
		exit(1);
	}
	return p;
}

static void map_status(void)
{
	int fd = open(status_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	void *p = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(*status)) == 0)
		p = mmap(NULL, sizeof(*status), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	status = need(p, status_path);
	memset(status, 0, sizeof(*status));
	status->pid = getpid();
	status->kernel_error = -1;
	status->magic = HARDWARE_MAGIC;
}

/* Wait for SIGUSR1 when told to stop here. */
static void stage(const char *name)
{
	sig_atomic_t before = n_go;

	if (strcmp(stop_at, name))
		return;
	printf("{\"stopped\": \"%s\", \"pid\": %d}\n", name, getpid());
	fflush(stdout);
	while (n_go == before && !is_ended)
		usleep(1000);
	if (is_ended)
		exit(0);
}

static const char *error_name(result r)
{
	const char *name = NULL;

	if (cu.cuGetErrorName)
		cu.cuGetErrorName(r, &name);
	return name ? name : "unknown";
}

static void check(result r, const char *what)
{
	if (r) {
		fprintf(stderr, "%s: %d %s\n", what, r, error_name(r));
		exit(1);
	}
}
#define CHECK(call) check((call), #call)

static void find(void *library, const char *name, void *function)
{
	void *p = dlsym(library, name);

	if (!p) {
		fprintf(stderr, "the driver has no %s\n", name);
		exit(1);
	}
	memcpy(function, &p, sizeof(p));
}

static void load_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	find(library, "cuInit", &cu.cuInit);
	stage("loaded");
	CHECK(cu.cuInit(0));
	stage("init");
	find(library, "cuDeviceGet", &cu.cuDeviceGet);
	find(library, "cuDevicePrimaryCtxRetain", &cu.cuDevicePrimaryCtxRetain);
	find(library, "cuCtxSetCurrent", &cu.cuCtxSetCurrent);
	find(library, "cuMemHostAlloc", &cu.cuMemHostAlloc);
	find(library, "cuMemAlloc_v2", &cu.cuMemAlloc_v2);
	find(library, "cuMemcpyHtoD_v2", &cu.cuMemcpyHtoD_v2);
	find(library, "cuModuleLoadData", &cu.cuModuleLoadData);
	find(library, "cuModuleGetFunction", &cu.cuModuleGetFunction);
	find(library, "cuLaunchKernel", &cu.cuLaunchKernel);
	find(library, "cuStreamQuery", &cu.cuStreamQuery);
	find(library, "cuGetErrorName", &cu.cuGetErrorName);
}

static void make_context(void)
{
	struct shared_words *w;
	void *context, *p;
	int device;

	CHECK(cu.cuDeviceGet(&device, 0));
	CHECK(cu.cuDevicePrimaryCtxRetain(&context, device));
	CHECK(cu.cuCtxSetCurrent(context));
	CHECK(cu.cuMemHostAlloc(&p, sizeof(*w), HOST_ALLOC));
	w = p;
	memset(w, 0, sizeof(*w));
	for (uint32_t i = 0; i < 1024; i++)
		w->tags[i] = 0xc0ffee00u + i;
	words = w;
	stage("context");
}

/* Global memory with bytes 0, 7, 14, ...; a reader can check them. */
static uint64_t plant_global(size_t size)
{
	unsigned char *bytes = need(malloc(size), "malloc");
	uint64_t device;

	for (size_t i = 0; i < size; i++)
		bytes[i] = (unsigned char)(i * 7);
	CHECK(cu.cuMemAlloc_v2(&device, size));
	CHECK(cu.cuMemcpyHtoD_v2(device, bytes, size));
	free(bytes);
	return device;
}

static void *read_image(void)
{
	int fd = open(image_path, O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		need(NULL, image_path);
	return need(mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0), image_path);
}

/* Start the kernel; returns the address that is its second argument. */
static uint64_t launch(uint64_t global)
{
	uint64_t w = (uint64_t)(uintptr_t)words, wide = PLANTED_WIDE;
	uint64_t out = strcmp(kernel->name, "fault") ? global + kernel->planted : 0x10;
	struct pair both = PLANTED_PAIR;
	int32_t number = PLANTED_NUMBER;
	float ratio = PLANTED_RATIO;
	void *arguments[] = { &w, &out, &number, &ratio, &wide, &both }; /* the others take the first two */
	void *module, *function;

	CHECK(cu.cuModuleLoadData(&module, read_image()));
	CHECK(cu.cuModuleGetFunction(&function, module, kernel->symbol));
	CHECK(cu.cuLaunchKernel(function, kernel->blocks, 1, 1, kernel->threads, 1, 1, 0, NULL, arguments, NULL));
	return out;
}

/* The kernel is under way: say where things are. */
static void say_ready(uint64_t global, uint64_t out)
{
	while (!words->progress[0] && !is_ended)
		usleep(1000);
	is_ready = 1;
	printf("{\"ready\": true, \"pid\": %d, \"global\": \"0x%llx\", \"global_size\": %zu, \"shared\": \"0x%llx\", "
	       "\"local\": \"0x%llx\", \"words\": \"0x%llx\", \"out\": \"0x%llx\", \"blocks\": %u, \"threads\": %u}\n",
	       getpid(), (unsigned long long)global, kernel->planted, (unsigned long long)words->shared_address,
	       (unsigned long long)words->local_address, (unsigned long long)(uintptr_t)words, (unsigned long long)out,
	       kernel->blocks, kernel->threads);
	fflush(stdout);
}

static void wait_end(void)
{
	result r;

	/* No synchronisation that spins: a stopped GPU would use a whole CPU. */
	while ((r = cu.cuStreamQuery(NULL)) == NOT_READY)
		usleep(1000);
	status->kernel_error = r;
	printf("{\"kernel_error\": %d, \"name\": \"%s\"}\n", r, error_name(r));
	fflush(stdout);
	while (!is_ended && n_go)
		usleep(1000);
}

static bool parse(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--status-file"))
			status_path = argv[i + 1];
		if (!strcmp(argv[i], "--stop-at"))
			stop_at = argv[i + 1];
		if (!strcmp(argv[i], "--image"))
			image_path = argv[i + 1];
		for (size_t k = 0; !strcmp(argv[i], "--kernel") && k < sizeof(kernels) / sizeof(kernels[0]); k++)
			if (!strcmp(kernels[k].name, argv[i + 1]))
				kernel = &kernels[k];
	}
	return status_path && image_path && kernel;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	uint64_t global;

	if (!parse(argc, argv)) {
		fprintf(stderr, "usage: %s --kernel spin|diverge|fault --image CUBIN --status-file PATH [--stop-at STAGE]\n",
			argv[0]);
		return 2;
	}
	signal(SIGUSR1, on_go);
	signal(SIGTERM, on_end);
	map_status();
	pthread_create(&thread, NULL, beat, NULL);
	stage("none");
	load_driver();
	make_context();
	global = plant_global(2 * kernel->planted);
	say_ready(global, launch(global));
	wait_end();
	return 0;
}
