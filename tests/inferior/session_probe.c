/* SPDX-License-Identifier: MIT */
/*
 * One attach and detach with nothing around it; prints what happens, line by line.
 *
 * usage: session_probe PID [libcuda=PATH] [engine=PATH] [undo=FILE] [path=fd|call|legacy|launch]
 *        [die=N] [label=N] [wait=MS] [capabilities=N] COMMAND...
 * COMMAND: attach, detach, rescue, symbols, hold (until stdin ends), events (until one came)
 * die=N kills the process at the Nth step, counted from 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "cudbgshim_session.h"
#include "tests/inferior/probe.h"

static struct {
	struct cudbgshim_session_options o;
	struct cudbgshim_session *session;
	long die, steps, wait_ms;
	unsigned n_events;
} probe = { .die = -1, .wait_ms = 0 };

static void on_step(void *user, const char *step)
{
	printf("step %s\n", step);
	fflush(stdout);
	if (probe.steps++ == probe.die)
		raise(SIGKILL);
}

static void on_event(void *user, const struct cudbgshim_event *event)
{
	probe.n_events++;
	printf("event %u\n", event->kind);
}

static int report(int rc)
{
	const struct cudbgshim_session_error *e = cudbgshim_session_error(probe.session);

	printf("outcome %s\n", cudbgshim_outcome_name(cudbgshim_session_outcome(probe.session)));
	if (rc < 0)
		printf("error %s %d %u %s: %s\n", cudbgshim_outcome_name(e->outcome), e->error, e->result,
		       e->step, e->text);
	fflush(stdout);
	return rc;
}

/* An armed session is watched for a while. */
static int run(void)
{
	uint64_t deadline = clock_deadline_ms((uint64_t)probe.wait_ms);
	int rc;

	do
		rc = cudbgshim_session_run(probe.session);
	while (rc == 0 && clock_left_ms(deadline) &&
	       cudbgshim_session_outcome(probe.session) == CUDBGSHIM_OUTCOME_ARMED &&
	       nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL) == 0);
	return rc;
}

static int attach(void)
{
	int rc;

	/* A second session in this process is refused by the loader: the first one must end. */
	cudbgshim_session_destroy(probe.session);
	rc = cudbgshim_session_create(&probe.o, &probe.session);
	if (rc < 0)
		return rc;
	rc = report(run());
	if (cudbgshim_session_shim(probe.session)) {
		uint32_t n = 0;

		cudbgshim_get_n_devices(cudbgshim_session_shim(probe.session), &n);
		printf("path %d devices %u\n", cudbgshim_session_path(probe.session), n);
	}
	return rc;
}

static int detach(void)
{
	cudbgshim_session_detach(probe.session);
	return report(run());
}

static int rescue(void)
{
	struct cudbgshim_rescue_options o = { probe.o.pid, probe.o.proc_fd, probe.o.memory, 0 };
	struct cudbgshim_session_error e = { .text = "" };
	int rc = cudbgshim_rescue(&o, probe.o.undo, &e);

	printf("rescue %d %s\n", rc, e.text);
	return rc;
}

static int suspend(void)
{
	return cudbgshim_session_suspend_all(probe.session);
}

static int die(void)
{
	fflush(stdout);
	return raise(SIGKILL);
}

static int hold(void)
{
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}

static int events(void)
{
	uint64_t deadline = clock_deadline_ms(10000);
	unsigned before = probe.n_events;

	fflush(stdout);
	while (probe.n_events == before && clock_left_ms(deadline)) {
		if (cudbgshim_session_drain(probe.session) < 0)
			return -EIO;
		nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	}
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} commands[] = {
	{ "attach", attach }, { "detach", detach }, { "rescue", rescue },
	{ "hold", hold },     { "events", events }, { "symbols", NULL },
	{ "suspend", suspend }, { "die", die },
};

static int command(const char *word)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, word))
			return commands[i].run ? commands[i].run() :
						 probe_symbols(&probe.o.memory, probe.o.proc_fd);
	fprintf(stderr, "no command %s\n", word);
	exit(2);
}

static struct cudbgshim_undo *map_undo(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0666);
	void *p = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, 4096) == 0)
		p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		exit(2);
	return p;
}

static enum cudbgshim_path path_of(const char *name)
{
	static const char *const names[] = { "auto", "fd", "call", "legacy", "launch" };
	unsigned i = 0;

	while (i < 4 && strcmp(names[i], name))
		i++;
	return (enum cudbgshim_path)i;
}

static bool option(const char *word)
{
	const char *value = strchr(word, '=');

	if (!value++)
		return false;
	if (!strncmp(word, "libcuda=", 8))
		probe.o.driver.path = value;
	else if (!strncmp(word, "engine=", 7))
		probe.o.driver.engine = value;
	else if (!strncmp(word, "undo=", 5))
		probe.o.undo = map_undo(value);
	else if (!strncmp(word, "path=", 5))
		probe.o.path = path_of(value);
	else if (!strncmp(word, "left=", 5))
		probe.o.is_left_suspended = true;
	else if (!strncmp(word, "die=", 4))
		probe.die = atol(value);
	else if (!strncmp(word, "label=", 6))
		probe.o.label = (uint32_t)atol(value);
	else if (!strncmp(word, "capabilities=", 13))
		probe.o.capabilities = (uint32_t)atol(value);
	else if (!strncmp(word, "wait=", 5))
		probe.wait_ms = atol(value);
	else
		return false;
	return true;
}

static void open_target(pid_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	probe.o.pid = pid;
	probe.o.proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	probe.o.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	probe.o.memory = cudbgshim_memory_from_fd(openat(probe.o.proc_fd, "mem", O_RDWR | O_CLOEXEC));
	probe.o.trace = on_step;
	probe.o.on_event = on_event;
}

int main(int argc, char **argv)
{
	int rc = 0;

	if (argc < 2)
		return 2;
	signal(SIGPIPE, SIG_IGN);
	open_target(atoi(argv[1]));
	for (int i = 2; i < argc && rc >= 0; i++)
		if (!option(argv[i]))
			rc = command(argv[i]);
	cudbgshim_session_destroy(probe.session);
	fflush(stdout);
	return rc < 0 ? 1 : 0;
}
