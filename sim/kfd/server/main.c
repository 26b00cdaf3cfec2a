/* SPDX-License-Identifier: MIT */
/* gpu-agent-sim: a simulated /dev/kfd and its topology, mounted over FUSE. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/argv.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "front.h"

/* The options as they were given. */
struct options {
	const char *mount, *gpus, *kernel, *permissions, *mode, *memory_info;
	bool help, version, list;
};

/* All that the program has. */
struct program {
	struct sim sim;
	struct front *front;
	int epoll_fd;
	char dir[PATH_MAX];
	bool own_dir;
	unsigned int mode;
};

__attribute__((format(printf, 1, 2))) static int fail(const char *fmt, ...)
{
	va_list ap;

	fputs("gpu-agent-sim: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return 2;
}

static void print_profiles(void)
{
	const struct kernel_profile *k;
	const struct gpu_profile *g;

	for (size_t i = 0; (g = gpu_profile_at(i)); i++)
		printf("gpu %s %s %s\n", g->name, g->mes ? "MES" : "HWS",
		       g->too_old ? "not debuggable" : g->per_vmid ? "per-process" : "device-global");
	for (size_t i = 0; (k = kernel_profile_at(i)); i++)
		printf("kernel %s entry %u %s\n", k->name, k->device_entry_size,
		       !k->has_debug ? "no debugger" : k->process_bound ? "process" : "thread");
}

static int add_gpus(struct sim *s, const char *list)
{
	const struct gpu_profile *g;

	if (!strcmp(list, "none"))
		return 0;
	for (;;) {
		size_t n = strcspn(list, ",");

		g = gpu_profile_find(list, n);
		if (!g)
			return fail("--gpus: unknown GPU '%s' (see --list)", list);
		if (sim_gpu_add(s, g))
			return fail("--gpus: too many GPUs");
		if (!list[n])
			return 0;
		list += n + 1;
	}
}

/* Read an option that has two values; without it, *ret stays as it is. */
static int choose(const char *option, const char *value, const char *off, const char *on, bool *ret)
{
	if (!value)
		return 0;
	if (strcmp(value, off) && strcmp(value, on))
		return fail("bad value for --%s", option);
	*ret = !strcmp(value, on);
	return 0;
}

static int configure(struct program *p, const struct options *o)
{
	const struct kernel_profile *k = kernel_profile_find(o->kernel);
	char *end;

	if (!k)
		return fail("--kernel: unknown version '%s' (see --list)", o->kernel);
	sim_init(&p->sim, &sim_os_linux, k);
	p->mode = (unsigned int)strtoul(o->mode, &end, 8);
	if (*end || p->mode > 0777)
		return fail("--mode: '%s' is not an octal file mode", o->mode);
	if (add_gpus(&p->sim, o->gpus) ||
	    choose("permissions", o->permissions, "thread", "process", &p->sim.process_bound) ||
	    choose("memory-info", o->memory_info, "real", "fixed", &p->sim.memory_info_fixed))
		return 2;
	if (o->mount) {
		if (!realpath(o->mount, p->dir))
			return fail("--mount: no such directory: %s", o->mount);
		return 0;
	}
	str_copy(p->dir, sizeof(p->dir), "/tmp/gpu-agent-sim.XXXXXX");
	if (!mkdtemp(p->dir))
		return fail("cannot make a directory: %s", strerror(errno));
	p->own_dir = true;
	return chmod(p->dir, 0755) ? fail("chmod: %s", strerror(errno)) : 0;
}

/*
 * Watch the end of a process.  The event is one-shot: a process may be dead while something else
 * still uses its address space.
 */
static void watch_process(void *data, struct sim_process *proc, bool added)
{
	struct program *p = data;
	struct epoll_event ev = { .events = EPOLLIN | EPOLLONESHOT, .data.fd = proc->hold.pidfd };

	epoll_ctl(p->epoll_fd, added ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, proc->hold.pidfd, &ev);
}

/* Milliseconds until something is due; -1 for never. */
static int wait_ms(const struct program *p)
{
	uint64_t next = sim_next_deadline(&p->sim), now = p->sim.os->now_ns();

	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)((next - now + 999999) / 1000000);
}

static int loop(struct program *p, int signal_fd)
{
	const int front = front_fd(p->front);
	struct epoll_event ev[16];
	int n;

	for (;;) {
		n = epoll_wait(p->epoll_fd, ev, 16, wait_ms(p));
		if (n < 0 && errno != EINTR)
			return 1;
		for (int i = 0; i < n; i++)
			if (ev[i].data.fd == signal_fd)
				return 0;
		if (front_serve(p->front) < 0)
			return 0; /* Another program has unmounted it. */
		for (int i = 0; i < n; i++)
			if (ev[i].data.fd != front)
				sim_check_process(&p->sim, ev[i].data.fd);
		sim_tick(&p->sim);
		front_check_interrupts(p->front);
	}
}

static int serve(struct program *p)
{
	auto_close int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	auto_close int signal_fd = -1;
	struct epoll_event ev = { .events = EPOLLIN };
	sigset_t set;
	int r;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (epoll_fd < 0 || signal_fd < 0)
		return fail("%s", strerror(errno));
	p->epoll_fd = epoll_fd;
	p->sim.on_process = watch_process;
	p->sim.on_process_data = p;
	ev.data.fd = signal_fd;
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, signal_fd, &ev);
	ev.data.fd = front_fd(p->front);
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ev.data.fd, &ev);
	/* Tests wait for this line. */
	printf("ready %s\n", p->dir);
	fflush(stdout);
	r = loop(p, signal_fd);
	sim_interrupt_all(&p->sim);
	return r;
}

static int run(const struct options *o)
{
	/* It is too large for the stack. */
	static struct program p;
	int r = configure(&p, o);

	if (!r) {
		r = front_create(&p.sim, p.dir, p.mode, &p.front);
		if (r == -ENODEV)
			r = fail("FUSE is not available: no /dev/fuse; load the fuse module");
		else if (r == -EPERM)
			r = fail("no access to /dev/fuse");
		else if (r)
			r = fail("cannot mount at %s", p.dir);
	}
	if (!r)
		r = serve(&p);
	front_destroy(p.front);
	p.sim.on_process = NULL;
	sim_deinit(&p.sim);
	if (p.own_dir)
		rmdir(p.dir);
	return r;
}

int main(int argc, char **argv)
{
	struct options o = { .gpus = "gfx942", .kernel = "1.17", .mode = "666" };
	const struct argv_option table[] = {
		{ "mount", 'm', ARGV_STRING, &o.mount, "DIR",
		  "mount there (default: a new directory, removed at the end)" },
		{ "gpus", 'g', ARGV_STRING, &o.gpus, "LIST", "comma-separated, or none" },
		{ "kernel", 'k', ARGV_STRING, &o.kernel, "VERSION", "ioctl version to imitate" },
		{ "permissions", 'p', ARGV_STRING, &o.permissions, "thread|process",
		  "who may debug; default: as that kernel" },
		{ "memory-info", 0, ARGV_STRING, &o.memory_info, "real|fixed",
		  "fault details: none, as every kernel so far, or 32 bytes" },
		{ "mode", 0, ARGV_STRING, &o.mode, "OCTAL", "permissions of the device file" },
		{ "list", 'l', ARGV_FLAG, &o.list, NULL, "show GPUs and kernels, then exit" },
		{ "version", 0, ARGV_FLAG, &o.version, NULL, "show the version" },
		{ "help", 'h', ARGV_FLAG, &o.help, NULL, "this text" },
		{ NULL },
	};
	const struct argv_option *const tables[] = { table, NULL };
	char error[160];
	int n = argv_parse(argc, argv, tables, error, sizeof(error));

	if (n < 0)
		return fail("%s", error);
	if (n > 0)
		return fail("unexpected argument '%s'", argv[0]);
	if (o.help) {
		puts("usage: gpu-agent-sim [OPTIONS]\n"
		     "Serve a simulated AMD GPU driver: kfd, topology/, proc/ and control below DIR.");
		argv_print_options(table);
		return 0;
	}
	if (o.version) {
		puts("gpu-agent-sim " GPU_AGENT_VERSION);
		return 0;
	}
	if (o.list) {
		print_profiles();
		return 0;
	}
	return run(&o);
}
