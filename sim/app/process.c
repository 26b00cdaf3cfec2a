/* SPDX-License-Identifier: MIT */
#include "sim/app/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

#define SCRIPT_MAX    65536
/* Microseconds between two beats.  At 100 a program takes 8 % of a processor, which tests of gaps ask for. */
#define TEST_BEAT_US  "1000"
#define SCENE_BEAT_US "10000"
#define ON_BEAT_NS    UINT64_C(2000000)

/* ---- beginning ---- */

int process_fail(const struct process *p, const char *what, int r)
{
	fprintf(stderr, "%s: %s: %s\n", p->program, what, strerror(-r));
	return 1;
}

/* Find the script: a scene, a file, the option, or the default. */
static int script_load(struct process *p, const struct process_options *o)
{
	if (!!o->file + !!o->script + !!o->scene > 1)
		return -EINVAL;
	if (o->scene)
		return scene_read(p->vendor, o->scene_dir, o->scene, &p->script);
	if (o->file)
		p->script.path = strdup(o->file);
	if (o->file)
		return p->script.path ? fd_read_file(o->file, SCRIPT_MAX, &p->script.text, &p->script.size) : -ENOMEM;
	p->script.text = strdup(o->script ? o->script : p->default_script);
	p->script.size = p->script.text ? strlen(p->script.text) : 0;
	return p->script.text ? 0 : -ENOMEM;
}

/* Say which command failed, and why: "simapp: FILE:LINE: 'COMMAND': REASON". */
static void say(const struct process *p, bool is_listening, const struct words_error *e, int r)
{
	const char *path = is_listening ? NULL : p->script.path;

	fprintf(stderr, "%s: ", p->program);
	if (path)
		fprintf(stderr, "%s:%u: ", path, e->line);
	fprintf(stderr, "'%s': %s\n", e->command, e->why ? e->why : strerror(-r));
}

/* Take the values of parameters, and see that the script has them.  @return 0, or an exit status. */
static int take_names(struct process *p, const char *set)
{
	struct words_error err;
	int r = 0;

	for (const char *at = set, *end; at; at = *end ? end + 1 : NULL) {
		end = strchrnul(at, ',');
		r = words_set(&p->names, at, (size_t)(end - at));
		if (r == 0)
			continue;
		fprintf(stderr, "%s: --set %.*s: %s\n", p->program, (int)(end - at), at,
			r == -E2BIG ? "too long, or too many of them" : "must be NAME=VALUE");
		return 2;
	}
	r = words_run_script(p->script.text, p->script.size, &p->names, NULL, NULL, &err);
	if (r < 0) {
		say(p, false, &err, r);
		return 1;
	}
	for (size_t i = 0; i < p->names.n; i++) {
		if (!p->names.list[i].is_let) {
			fprintf(stderr, "%s: --set %s: the script has no such parameter\n", p->program, p->names.list[i].name);
			return 2;
		}
	}
	return 0;
}

/* Say why there is no script; a name that no scene has is answered with those there are. */
static int no_script(const struct process *p, const struct process_options *o, int r)
{
	if (!o->scene || r != -ENOENT)
		return process_fail(p, p->script.path ? p->script.path : "script", r);
	fprintf(stderr, "%s: there is no scene '%s'; there are:\n", p->program, o->scene);
	scene_list(p->vendor, o->scene_dir, stderr);
	return 2;
}

/* Map the counters, shared if there is a file for them. */
static int status_map(const char *path, struct simapp_status **ret)
{
	auto_close int fd = -1;
	struct simapp_status *s;

	if (path) {
		fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (fd < 0 || ftruncate(fd, sizeof(*s)))
			return -errno;
	}
	s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | (path ? 0 : MAP_ANONYMOUS), fd, 0);
	if (s == MAP_FAILED)
		return -errno;
	s->magic = SIMAPP_MAGIC;
	s->version = SIMAPP_VERSION;
	s->pid = getpid();
	*ret = s;
	return 0;
}

int process_begin(struct process *p, const struct process_options *o, unsigned int *ret_threads)
{
	const char *beat_us = o->beat_us ? o->beat_us : o->scene ? SCENE_BEAT_US : TEST_BEAT_US;
	uint64_t threads;
	int r = script_load(p, o);

	if (r)
		return no_script(p, o, r);
	r = take_names(p, o->set);
	if (r)
		return r;
	if (str_to_u64(o->threads ? o->threads : "1", 0, SIMAPP_THREADS_MAX, &threads) ||
	    str_to_u64(beat_us, 0, 1000000, &p->beat_us))
		return process_fail(p, "--threads or --beat-us", -EINVAL);
	*ret_threads = (unsigned int)threads;
	r = status_map(o->status, &p->status);
	return r ? process_fail(p, o->status ? o->status : "status memory", r) : 0;
}

/* ---- threads ---- */

void process_pause_us(uint64_t us)
{
	struct timespec ts = { (time_t)(us / 1000000), (long)(us % 1000000) * 1000 };

	nanosleep(&ts, NULL);
}

int process_start_thread(void *(*run)(void *), void *arg, bool realtime)
{
	struct sched_param sp = { .sched_priority = 1 };
	pthread_attr_t attr;
	pthread_t t;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, 128 * 1024);
	if (realtime) {
		/* Without this the gaps would measure how busy the machine is. */
		pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
		pthread_attr_setschedpolicy(&attr, SCHED_FIFO);
		pthread_attr_setschedparam(&attr, &sp);
	}
	r = pthread_create(&t, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return -r;
}

/* What a heartbeat thread works on. */
struct beat {
	struct process *process;
	struct simapp_thread *slot;
	bool is_first;
};

/* Count, and measure the longest time between two beats. */
static void *beat_run(void *arg)
{
	struct beat *b = arg;
	struct process *p = b->process;
	uint64_t last = clock_now_ns(), called = 0;

	b->slot->tid = (int32_t)syscall(SYS_gettid);
	for (;;) {
		uint64_t now = clock_now_ns(), gap = now - last;

		if (gap > b->slot->max_gap_ns)
			b->slot->max_gap_ns = gap;
		last = now;
		b->slot->beats++;
		if (b->is_first && p->on_beat && now - called > ON_BEAT_NS) {
			p->on_beat(p);
			called = now;
		}
		if (p->beat_us)
			process_pause_us(p->beat_us);
	}
	return NULL;
}

int process_start_beats(struct process *p, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		uint32_t slot = p->status->n_threads;
		struct beat *b;
		int r;

		if (slot == SIMAPP_THREADS_MAX)
			return -ENOSPC;
		b = malloc(sizeof(*b)); /* It lives as long as the thread, which is for ever. */
		if (!b)
			return -ENOMEM;
		*b = (struct beat){ p, &p->status->threads[slot], slot == 0 };
		r = process_start_thread(beat_run, b, p->realtime);
		if (r == -EPERM)
			r = process_start_thread(beat_run, b, false);
		if (r) {
			free(b);
			return r;
		}
		p->status->n_threads++;
	}
	return 0;
}

static struct simapp_status *counters; /* The signal handler needs them. */

static void on_signal(int sig)
{
	__atomic_add_fetch(&counters->signals, 1, __ATOMIC_RELAXED);
}

void process_count_signals(struct process *p)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	counters = p->status;
	sigaction(PROCESS_SIGNAL, &sa, NULL);
}

/* ---- commands ---- */

void process_ready(struct process *p)
{
	if (p->is_ready)
		return;
	p->is_ready = true;
	p->print_ready(p);
	fflush(stdout);
}

static int cmd_ready(struct process *p, const struct words *w)
{
	process_ready(p);
	return 0;
}

static int cmd_spin(struct process *p, const struct words *w)
{
	process_ready(p);
	for (;;)
		pause();
	return 0;
}

static int cmd_sleep(struct process *p, const struct words *w)
{
	struct timespec ts;
	uint64_t ms;

	if (w->n != 2 || words_number(w, 1, 0, 86400000, &ms))
		return -EINVAL;
	ts = (struct timespec){ (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
	while (nanosleep(&ts, &ts) && errno == EINTR)
		;
	return 0;
}

static int run_text(struct process *p, const char *text, size_t size, bool is_listening);

/* Run commands from standard input, each answered, until its end. */
static int cmd_listen(struct process *p, const struct words *w)
{
	char line[4096];
	int r;

	process_ready(p);
	for (;;) {
		if (!fgets(line, sizeof(line), stdin)) {
			if (!ferror(stdin) || errno != EINTR)
				return 0;
			/* A signal interrupted the read. */
			clearerr(stdin);
			continue;
		}
		r = run_text(p, line, strlen(line), true);
		if (r)
			printf("error %s\n", strerrorname_np(-r));
		else
			puts("ok");
		fflush(stdout);
	}
}

static int cmd_exec(struct process *p, const struct words *w)
{
	if (w->n < 2)
		return -EINVAL;
	fflush(stdout);
	execvp(w->w[1], (char *const *)&w->w[1]);
	return -errno;
}

/* Make a child that does nothing and ends when its parent does. */
static int cmd_fork(struct process *p, const struct words *w)
{
	pid_t parent = getpid(), pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(0);
		for (;;)
			pause();
	}
	return 0;
}

static int cmd_threads(struct process *p, const struct words *w)
{
	uint64_t n;

	if (w->n != 2 || words_number(w, 1, 0, SIMAPP_THREADS_MAX, &n))
		return -EINVAL;
	return process_start_beats(p, (unsigned int)n);
}

static int cmd_exit(struct process *p, const struct words *w)
{
	uint64_t code;

	if (words_number(w, 1, 0, 255, &code))
		return -EINVAL;
	fflush(stdout);
	_exit((int)code);
}

static int cmd_setuid(struct process *p, const struct words *w)
{
	uint64_t uid;

	if (w->n != 2 || words_number(w, 1, 0, UINT32_MAX - 1, &uid))
		return -EINVAL;
	if (setresgid((gid_t)uid, (gid_t)uid, (gid_t)uid) || setresuid((uid_t)uid, (uid_t)uid, (uid_t)uid))
		return -errno;
	return 0;
}

static int cmd_name(struct process *p, const struct words *w)
{
	if (w->n != 2)
		return -EINVAL;
	return prctl(PR_SET_NAME, w->w[1]) < 0 ? -errno : 0;
}

static int cmd_nodump(struct process *p, const struct words *w)
{
	return prctl(PR_SET_DUMPABLE, 0) ? -errno : 0;
}

static const struct {
	const char *name;
	int (*run)(struct process *p, const struct words *w);
	const char *help;
} commands[] = {
	{ "ready", cmd_ready, "print the ready line" },
	{ "spin", cmd_spin, "ready, then sleep until killed" },
	{ "sleep", cmd_sleep, "MS" },
	{ "listen", cmd_listen, "ready, then commands from stdin, each answered ok or error NAME" },
	{ "exec", cmd_exec, "PROGRAM [ARG...]" },
	{ "fork", cmd_fork, "a child that only waits" },
	{ "threads", cmd_threads, "N: more heartbeat threads" },
	{ "exit", cmd_exit, "[CODE]: without switching anything off" },
	{ "name", cmd_name, "NAME of the process" },
	{ "setuid", cmd_setuid, "UID" },
	{ "nodump", cmd_nodump, "become undumpable" },
};

void process_help(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(commands); i++)
		printf("  %-16s %s\n", commands[i].name, commands[i].help);
}

static int run_command(void *ctx, const struct words *w)
{
	struct process *p = ctx;
	int r = p->run(p, w);

	for (size_t i = 0; i < ARRAY_SIZE(commands) && r == -ENOSYS; i++)
		if (!strcmp(commands[i].name, w->w[0]))
			r = commands[i].run(p, w);
	p->status->commands += !r;
	return r == -ENOSYS ? -EINVAL : r;
}

static int run_text(struct process *p, const char *text, size_t size, bool is_listening)
{
	struct words_error err;
	int r = words_run_script(text, size, &p->names, run_command, p, &err);

	if (r < 0)
		say(p, is_listening, &err, r);
	return r;
}

int process_run_script(struct process *p, const char *text, size_t size)
{
	return run_text(p, text, size, false);
}
