/* SPDX-License-Identifier: MIT */
/* Answers of the device itself, to commands that belong to no session. */
#include "answers.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Behind the last command of Linux 6.12, and far behind. */
#define COMMANDS_END 0x29u

static uint32_t command(uint32_t nr, uint32_t size)
{
	return KFDABI_IOC(KFDABI_DIR_RW, nr, size);
}

/* Each number with an argument of zeros, with too short a one, and without one. */
static int play_command(const uint64_t *with)
{
	uint8_t buf[512] = { 0 };

	return device_call(actor_kfd, command((uint32_t)with[0], (uint32_t)with[1]),
			   with[2] ? buf : NULL);
}

ANSWERS(device)
{
	static const struct { const char *name; uint32_t size; bool has_arg; } kinds[] = {
		{ "zeros", 512, true }, { "short", 4, true }, { "no_argument", 16, false },
	};
	struct actor a;

	if (!actor_start(&a))
		return;
	answer(PLAY(&a, play_open, 0), "open");
	for (size_t k = 0; k < TEST_COUNT(kinds); k++)
		for (uint32_t nr = 0; nr <= COMMANDS_END; nr++)
			answer(PLAY(&a, play_command, nr, kinds[k].size, kinds[k].has_arg),
			       "%s.%02x", kinds[k].name, nr);
	for (uint32_t nr = 0x2a; nr < 0x100; nr += 0x35)
		answer(PLAY(&a, play_command, nr, 512, true), "zeros.%02x", nr);
	answer(PLAY(&a, play_close, 0), "close");
}

/* A result of a system call that tells errors in errno. */
static int told(ssize_t r)
{
	return r < 0 ? -errno : (int)r;
}

static int play_fork_uses_it(const uint64_t *with)
{
	struct kfdabi_get_version_args v;
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(-device_call(actor_kfd, KFDABI_IOC_GET_VERSION, &v));
	return waitpid(pid, &status, 0) == pid ? -(status >> 8) : -ECHILD;
}

ANSWERS(arguments)
{
	struct kfdabi_get_version_args v = { 0 };
	struct iovec iov = { &v, 1 };
	struct pollfd p;
	struct actor a;
	struct stat st;
	uint8_t buf[64];
	void *map;
	int fd;

	answer(device_call(env_kfd(), KFDABI_IOC_GET_VERSION, &v), "version");
	answer_with("%u", v.minor_version);
	answer((int)v.major_version, "version.minor");
	/* Only the number selects. */
	answer(device_call(env_kfd(), UINT32_C(0x80085a01), &v), "other_letter");
	memset(buf, 0x5a, sizeof(buf));
	answer(device_call(env_kfd(), UINT32_C(0x80044b01), buf), "half_of_the_version");
	answer_with("%x %x", buf[0], buf[4]);
	answer(0, "half_of_the_version.bytes");
	memset(buf, 0x5a, sizeof(buf));
	answer(device_call(env_kfd(), UINT32_C(0x80204b01), buf), "more_than_the_version");
	answer_with("%x %x", buf[0], buf[8]);
	answer(0, "more_than_the_version.bytes");
	memset(buf, 0x5a, sizeof(buf));
	answer(device_call(env_kfd(), UINT32_C(0x00084b01), buf), "version_without_direction");
	answer_with("%x", buf[0]);
	answer(0, "version_without_direction.bytes");
	answer(device_call(env_kfd(), UINT32_C(0x40084b01), buf), "version_as_input");
	answer(device_call(env_kfd(), KFDABI_IOC_GET_VERSION, (void *)8), "version.wild_pointer");
	map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	answer(device_call(env_kfd(), KFDABI_IOC_GET_VERSION, map), "version.read_only_page");
	munmap(map, 4096);
	answer(told(read(env_kfd(), buf, 1)), "read");
	answer(told(write(env_kfd(), buf, 1)), "write");
	answer(told(readv(env_kfd(), &iov, 1)), "readv");
	answer(told(pread(env_kfd(), buf, 1, 0)), "pread");
	answer(told(lseek(env_kfd(), 0, SEEK_SET)), "lseek");
	answer(told(ftruncate(env_kfd(), 0)), "ftruncate");
	p = (struct pollfd){ .fd = env_kfd(), .events = POLLIN | POLLOUT };
	answer(told(poll(&p, 1, 0)), "poll");
	answer(told(fstat(env_kfd(), &st)), "fstat");
	answer_with("%s", S_ISCHR(st.st_mode) ? "char" : S_ISREG(st.st_mode) ? "regular" : "other");
	answer(0, "fstat.kind");
	map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, env_kfd(), 0);
	answer(map == MAP_FAILED ? -errno : 0, "mmap.offset_0");
	for (int mode = O_RDONLY; mode <= O_RDWR; mode++) {
		fd = open(env_kfd_path(), mode | O_CLOEXEC);
		answer(fd < 0 ? -errno : 0, "open.mode_%d", mode);
		answer(device_call(fd, KFDABI_IOC_GET_VERSION, &v), "open.mode_%d.version", mode);
		close(fd);
	}
	fd = open(env_kfd_path(), O_PATH | O_CLOEXEC);
	answer(device_call(fd, KFDABI_IOC_GET_VERSION, &v), "open.o_path.version");
	close(fd);
	if (!actor_start(&a))
		return;
	answer(PLAY(&a, play_open, 0), "actor.open");
	answer(PLAY(&a, play_fork_uses_it, 0), "inherited_by_fork");
}

/* ---- events ---- */

static int play_create_event(const uint64_t *with)
{
	struct kfdabi_create_event_args e = { .event_type = (uint32_t)with[0],
					      .auto_reset = (uint32_t)with[1],
					      .event_page_offset = with[2] };

	return device_call(actor_kfd, KFDABI_IOC_CREATE_EVENT, &e);
}

static int play_event(const uint64_t *with)
{
	static uint32_t ids[2];
	struct kfdabi_create_event_args e = { .event_type = (uint32_t)with[2],
					      .auto_reset = with[3] };
	struct kfdabi_event_args a = { 0 };
	int r;

	if (with[0] == 0) {
		r = device_call(actor_kfd, KFDABI_IOC_CREATE_EVENT, &e);
		ids[with[1]] = e.event_id;
		return r;
	}
	a.event_id = with[1] < 2 ? ids[with[1]] : (uint32_t)with[1];
	return device_call(actor_kfd,
			   with[0] == 1 ? KFDABI_IOC_SET_EVENT :
			   with[0] == 2 ? KFDABI_IOC_RESET_EVENT : KFDABI_IOC_DESTROY_EVENT,
			   &a);
}

/* Wait for two events of the process' own; the words tell the outcome. */
static int play_wait(const uint64_t *with)
{
	struct kfdabi_event_data data[2] = { { .event_id = (uint32_t)with[0] },
					     { .event_id = (uint32_t)with[1] } };
	struct kfdabi_wait_events_args w = { .events_ptr = with[2] == 99 ? 8 : (uint64_t)(uintptr_t)data,
					     .num_events = (uint32_t)with[2] == 99 ? 1 : (uint32_t)with[2],
					     .wait_for_all = with[3] >> 32 & 1,
					     .timeout_ms = (uint32_t)with[3] };
	int r = device_call(actor_kfd, KFDABI_IOC_WAIT_EVENTS, &w);

	return r < 0 ? r : (int)w.wait_result;
}

/* ---- several who wait ---- */

static uint32_t make_event(uint32_t auto_reset)
{
	struct kfdabi_create_event_args e = { .auto_reset = auto_reset };

	return device_call(actor_kfd, KFDABI_IOC_CREATE_EVENT, &e) < 0 ? 0 : e.event_id;
}

static int set_event(uint32_t id)
{
	struct kfdabi_event_args a = { .event_id = id };

	return device_call(actor_kfd, KFDABI_IOC_SET_EVENT, &a);
}

/* What one thread waits for, and what it is told. */
struct waiting {
	uint32_t events[2], n, all, ms;
	int result;
	pthread_t thread;
	volatile pid_t tid;
};

static void *wait_for_it(void *arg)
{
	struct waiting *w = arg;
	struct kfdabi_event_data data[2] = { { .event_id = w->events[0] }, { .event_id = w->events[1] } };
	struct kfdabi_wait_events_args a = { .events_ptr = (uint64_t)(uintptr_t)data,
					     .num_events = w->n,
					     .wait_for_all = w->all,
					     .timeout_ms = w->ms };

	w->tid = (pid_t)syscall(SYS_gettid);
	w->result = device_call(actor_kfd, KFDABI_IOC_WAIT_EVENTS, &a);
	if (w->result == 0)
		w->result = (int)a.wait_result;
	return NULL;
}

/* The call sleeps: a file of the kernel has its number, and "running" before. */
static bool is_in_ioctl(pid_t tid)
{
	char path[64], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = 0;
	close(fd);
	return atoi(text) == SYS_ioctl;
}

static void waiting_start(struct waiting *w)
{
	if (pthread_create(&w->thread, NULL, wait_for_it, w))
		abort();
	while (!w->tid || !is_in_ioctl(w->tid))
		usleep(1000);
}

static int waiting_end(struct waiting *w)
{
	pthread_join(w->thread, NULL);
	return w->result;
}

/* Two wait for one event, which is signaled once; with[1]: a third one comes then. */
static int play_wait_for_one(const uint64_t *with)
{
	const uint32_t id = make_event((uint32_t)with[0]);
	struct waiting w[3] = { { { id }, 1, 0, 2000 }, { { id }, 1, 0, 2000 }, { { id }, 1, 0, 100 } };

	waiting_start(&w[0]);
	waiting_start(&w[1]);
	set_event(id);
	if (with[1])
		wait_for_it(&w[2]);
	return waiting_end(&w[0]) + 10 * waiting_end(&w[1]) + 100 * w[2].result;
}

/* One that wants two events has taken the first; the other one only wants that, which is signaled with[0] times. */
static int play_wait_for_all(const uint64_t *with)
{
	const uint32_t ids[2] = { make_event(1), make_event(1) };
	struct waiting both = { { ids[0], ids[1] }, 2, 1, 2000 }, one = { { ids[0] }, 1, 0, 100 };

	waiting_start(&both);
	for (uint64_t i = 0; i < with[0]; i++)
		set_event(ids[0]);
	wait_for_it(&one);
	set_event(ids[1]);
	return waiting_end(&both) + 10 * one.result;
}

/* One that waits is told that its event is gone. */
static int play_destroy_awaited(const uint64_t *with)
{
	struct waiting w = { { make_event(1), make_event(1) }, 2, (uint32_t)with[0], 2000 };
	struct kfdabi_event_args a = { .event_id = w.events[1] };
	int r;

	waiting_start(&w);
	r = device_call(actor_kfd, KFDABI_IOC_DESTROY_EVENT, &a);
	return r < 0 ? r : waiting_end(&w);
}

static void do_nothing(int signo)
{
}

/* One that wants two events has taken the first, and is interrupted: who has that event then? */
static int play_interrupt(const uint64_t *with)
{
	const struct sigaction interrupts = { .sa_handler = do_nothing };
	const uint32_t ids[2] = { make_event((uint32_t)with[0]), make_event(1) };
	struct waiting both = { { ids[0], ids[1] }, 2, 1, 2000 }, one = { { ids[0] }, 1, 0, 100 };
	int r;

	sigaction(SIGUSR2, &interrupts, NULL);
	waiting_start(&both);
	set_event(ids[0]);
	pthread_kill(both.thread, SIGUSR2);
	r = waiting_end(&both);
	wait_for_it(&one);
	return r == -EINTR ? one.result : r < 0 ? r : 10 + r;
}

/* The age that is told to one who knows with[0], after with[1] signals; 1000 more where it would have to wait. */
static int play_age(const uint64_t *with)
{
	struct kfdabi_event_data data = { .u.last_event_age = with[0], .event_id = make_event(1) };
	struct kfdabi_wait_events_args a = { .events_ptr = (uint64_t)(uintptr_t)&data, .num_events = 1 };
	int r;

	for (uint64_t i = 0; i < with[1]; i++)
		set_event(data.event_id);
	/* The event resets itself: with[2] asks once more. */
	for (uint64_t i = 0; i <= with[2]; i++) {
		data.u.last_event_age = with[0];
		r = device_call(actor_kfd, KFDABI_IOC_WAIT_EVENTS, &a);
		if (r < 0)
			return r;
	}
	return (int)(data.u.last_event_age + 1000 * a.wait_result);
}

ANSWERS(event_waits)
{
	struct actor a;

	if (!actor_start(&a))
		return;
	PLAY(&a, play_open, 0);
	for (uint64_t reset = 0; reset <= 1; reset++) {
		answer(PLAY(&a, play_wait_for_one, reset, 0), "two.auto_reset_%d", (int)reset);
		answer(PLAY(&a, play_wait_for_one, reset, 1), "two_and_one_more.auto_reset_%d", (int)reset);
	}
	for (uint64_t n = 0; n <= 2; n++)
		answer(PLAY(&a, play_wait_for_all, n), "all_and_one.signaled_%d", (int)n);
	for (uint64_t all = 0; all <= 1; all++)
		answer(PLAY(&a, play_destroy_awaited, all), "destroyed.all_%d", (int)all);
	for (uint64_t reset = 0; reset <= 1; reset++)
		answer(PLAY(&a, play_interrupt, reset), "interrupted.auto_reset_%d", (int)reset);
	for (uint64_t age = 0; age <= 3; age++)
		for (uint64_t n = 0; n <= 2; n++)
			for (uint64_t before = 0; before <= 1; before++)
				answer(PLAY(&a, play_age, age, n, before), "age_%d.signaled_%d.waited_%d", (int)age, (int)n,
				       (int)before);
}

ANSWERS(events)
{
	enum { CREATE, SET, RESET, DESTROY };
	const uint64_t all = UINT64_C(1) << 32;
	struct actor a;

	if (!actor_start(&a))
		return;
	PLAY(&a, play_open, 0);
	for (uint64_t type = 0; type <= 10; type++)
		answer(PLAY(&a, play_create_event, type, 0, 0), "create.type_%d", (int)type);
	answer(PLAY(&a, play_create_event, UINT32_MAX, 0, 0), "create.type_max");
	answer(PLAY(&a, play_create_event, 0, 0, 4096), "create.unknown_page");
	answer(PLAY(&a, play_event, SET, 4000), "set.unknown");
	answer(PLAY(&a, play_event, RESET, 4000), "reset.unknown");
	answer(PLAY(&a, play_event, DESTROY, 4000), "destroy.unknown");
	answer(PLAY(&a, play_event, SET, UINT32_MAX), "set.max");
	answer(PLAY(&a, play_wait, 4000, 0, 1, 0), "wait.unknown");
	answer(PLAY(&a, play_wait, 4000, 0, 99, 0), "wait.wild_pointer");
	answer(PLAY(&a, play_wait, 0, 0, 0, 0), "wait.none");
	answer(PLAY(&a, play_wait, 0, 0, 0, all), "wait.none.all");
	for (uint64_t type = 0; type <= 8; type += 8) {
		answer(PLAY(&a, play_event, CREATE, 0, type, 0), "type_%d.create", (int)type);
		answer(PLAY(&a, play_event, CREATE, 1, type, 1), "type_%d.create_auto_reset", (int)type);
		answer(PLAY(&a, play_event, SET, 0), "type_%d.set", (int)type);
		answer(PLAY(&a, play_event, SET, 0), "type_%d.set_again", (int)type);
		answer(PLAY(&a, play_event, RESET, 0), "type_%d.reset", (int)type);
		answer(PLAY(&a, play_event, SET, 1), "type_%d.set_auto_reset", (int)type);
		answer(PLAY(&a, play_event, DESTROY, 0), "type_%d.destroy", (int)type);
		answer(PLAY(&a, play_event, DESTROY, 0), "type_%d.destroy_again", (int)type);
	}
}
