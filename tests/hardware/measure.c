/* SPDX-License-Identifier: MIT */
/*
 * gpu_check_measure: one session on a process by libcudbgshim alone, everything that can be seen of
 * it as lines of JSON on standard output, each with the time in microseconds since the start.
 *
 * usage: gpu_check_measure PID [libcuda=PATH] [path=fd|call|legacy|launch] [capabilities=N]
 *        [undo=FILE] [die=STEP] [refuse=CALLS] [calls=FILE] [set=VARIABLE:VALUE] COMMAND...
 * COMMAND: attach, facts, suspend, state, resume, detach, rescue, variables, hold (until stdin
 * ends), sleep=MS, die (SIGKILL to itself)
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "cudbgshim_session.h"
#include "tests/hardware/watch_calls.h"

static struct {
	struct cudbgshim_session_options o;
	struct cudbgshim_session *session;
	struct cudbgshim_symbols symbols;
	bool has_symbols;
	uint64_t start, step_start;
	const char *step, *die, *refused;
	uint64_t old[CUDBGSHIM_SYM_COUNT];
} m;

/* One line; what follows is the members of an object. */
static void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void say(const char *fmt, ...)
{
	va_list ap;

	printf("{\"us\": %" PRIu64 ", ", (clock_now_ns() - m.start) / 1000);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	puts("}");
	fflush(stdout);
}

/* Text of others inside of a JSON string. */
static const char *quoted(const char *text)
{
	static char buf[300];
	size_t n = 0;

	for (; *text && n < sizeof(buf) - 1; text++)
		buf[n++] = *text == '"' || *text == '\\' || (unsigned char)*text < ' ' ? '?' : *text;
	buf[n] = '\0';
	return buf;
}

/* ---- variables of the driver in the process ---- */

static void find_symbols(void)
{
	auto_free char *maps = NULL;
	struct cudbgshim_library library;
	size_t size;

	if (m.has_symbols || fd_read_file_at(m.o.proc_fd, "maps", 16 << 20, &maps, &size) < 0 ||
	    cudbgshim_find_libcuda(maps, size, 0, &library) < 0)
		return;
	m.has_symbols =
		cudbgshim_symbols_read(&m.o.memory, library.base, &m.symbols, NULL) == 0;
	say("\"library\": \"%s\", \"symbols\": %s", quoted(library.path),
	    m.has_symbols ? "true" : "false");
}

/* Those that are not what they were when last shown. */
static void show_changes(void)
{
	find_symbols();
	for (unsigned i = 0; m.has_symbols && i < CUDBGSHIM_SYM_COUNT; i++) {
		uint32_t size = cudbgshim_symbol_size((enum cudbgshim_symbol)i);
		uint64_t value = 0;

		if (!m.symbols.addr[i] || !size || size > sizeof(value) ||
		    m.o.memory.read(m.o.memory.ctx, m.symbols.addr[i], &value, size) < 0 ||
		    value == m.old[i])
			continue;
		m.old[i] = value;
		say("\"variable\": \"%s\", \"value\": %" PRIu64,
		    cudbgshim_symbol_name((enum cudbgshim_symbol)i), value);
	}
}

static int show_variables(void)
{
	find_symbols();
	memset(m.old, 0xff, sizeof(m.old));
	show_changes();
	return 0;
}

/* @param text  Name, colon, value. */
static void set_variable(const char *text)
{
	const char *colon = strchr(text, ':');
	uint32_t value = colon ? (uint32_t)strtoul(colon + 1, NULL, 0) : 0;
	int rc = -ENOENT;

	find_symbols();
	for (unsigned i = 0; colon && m.has_symbols && i < CUDBGSHIM_SYM_COUNT; i++) {
		const char *name = cudbgshim_symbol_name((enum cudbgshim_symbol)i);

		if (strlen(name) == (size_t)(colon - text) && !strncmp(name, text, strlen(name)) && m.symbols.addr[i])
			rc = m.o.memory.write(m.o.memory.ctx, m.symbols.addr[i], &value, sizeof(value));
	}
	say("\"set\": \"%s\", \"errno\": %d", quoted(text), rc);
}

/* ---- what the session tells ---- */

static void end_step(void)
{
	if (m.step)
		say("\"ended\": \"%s\", \"took_us\": %" PRIu64, m.step,
		    (clock_now_ns() - m.step_start) / 1000);
	m.step = NULL;
}

static void on_step(void *user, const char *step)
{
	end_step();
	show_changes();
	m.step = step;
	m.step_start = clock_now_ns();
	say("\"step\": \"%s\"", step);
	if (m.die && !strcmp(m.die, step))
		raise(SIGKILL);
}

static void on_event(void *user, const struct cudbgshim_event *e)
{
	say("\"event\": \"%s\", \"kind\": %u, \"device\": %u", cudbgshim_event_name(e->kind),
	    (unsigned)e->kind, e->dev);
}

static void on_enter(void *user, uint32_t slot, const char *name)
{
	say("\"enter\": \"%s\"", name);
}

static void on_leave(void *user, const struct cudbgshim_call *c)
{
	say("\"call\": \"%s\", \"slot\": %u, \"result\": \"%s\", \"took_us\": %" PRIu64, c->name, c->slot,
	    c->called ? cudbgshim_result_name(c->result) : "not called", c->took_ns / 1000);
}

/* ---- commands ---- */

static int run(void)
{
	int rc = cudbgshim_session_run(m.session);
	const struct cudbgshim_session_error *e = cudbgshim_session_error(m.session);

	end_step();
	show_changes();
	say("\"outcome\": \"%s\", \"path\": %d",
	    cudbgshim_outcome_name(cudbgshim_session_outcome(m.session)),
	    (int)cudbgshim_session_path(m.session));
	if (rc < 0)
		say("\"error\": \"%s\", \"errno\": %d, \"result\": \"%s\", \"step\": \"%s\"",
		    quoted(e->text), e->error, e->result ? cudbgshim_result_name(e->result) : "",
		    e->step ? e->step : "");
	return rc;
}

static int attach(void)
{
	int rc = cudbgshim_session_create(&m.o, &m.session);

	return rc < 0 ? rc : run();
}

static int detach(void)
{
	cudbgshim_session_detach(m.session);
	return run();
}

static int rescue(void)
{
	struct cudbgshim_rescue_options o = {
		.pid = m.o.pid, .proc_fd = m.o.proc_fd, .memory = m.o.memory
	};
	struct cudbgshim_session_error e = { .text = "" };
	int rc = m.o.undo ? cudbgshim_rescue(&o, m.o.undo, &e) : -EINVAL;

	show_changes();
	say("\"rescue\": %d, \"text\": \"%s\"", rc, quoted(e.text));
	return 0;
}

static struct cudbgshim *shim(void)
{
	struct cudbgshim *s = m.session ? cudbgshim_session_shim(m.session) : NULL;

	if (!s)
		say("\"error\": \"there is no session\"");
	return s;
}

static void show_device(struct cudbgshim *s, uint32_t dev)
{
	struct cudbgshim_device d;
	struct cudbgshim_layout l;
	int rc = cudbgshim_get_device(s, dev, &d);

	if (rc < 0)
		return say("\"device\": %u, \"errno\": %d", dev, rc);
	say("\"device\": %u, \"name\": \"%s\", \"sm_type\": \"%s\", \"sms\": %u, \"warps\": %u, \"lanes\": %u, "
	    "\"registers\": %u, \"predicates\": %u, \"uniform_registers\": %u, \"uniform_predicates\": %u",
	    dev, quoted(d.name), d.sm_type, d.n_sms, d.n_warps, d.n_lanes, d.n_registers,
	    d.n_predicates, d.n_uniform_registers, d.n_uniform_predicates);
	rc = cudbgshim_get_layout(s, dev, &l);
	if (rc < 0)
		return say("\"layout\": %d", rc);
	say("\"layout\": 0, \"buffer\": %u, \"device_size\": %u, \"sm_size\": %u, \"warp_size\": %u, \"lane_size\": %u",
	    l.buffer_size, l.device.size, l.sm.size, l.warp.size, l.lane.size);
	for (unsigned i = 0; i < 32; i++)
		if (l.device.attribute[i] || l.sm.attribute[i] || l.warp.attribute[i] ||
		    l.lane.attribute[i])
			say("\"attribute\": %u, \"device_size\": %u, \"sm_size\": %u, \"warp_size\": %u, "
			    "\"lane_size\": %u", i, l.device.attribute[i], l.sm.attribute[i],
			    l.warp.attribute[i], l.lane.attribute[i]);
}

static int facts(void)
{
	struct cudbgshim *s = shim();
	struct cudbgshim_version v;
	uint32_t n = 0, bits = 0;

	if (!s)
		return -ENODEV;
	v = cudbgshim_get_version(s);
	cudbgshim_get_n_devices(s, &n);
	cudbgshim_get_capabilities(s, &bits);
	say("\"version\": \"%u.%u.%u\", \"slots\": %u, \"devices\": %u, \"capabilities\": %u", v.major,
	    v.minor, v.revision, v.n_slots, n, bits);
	for (uint32_t dev = 0; dev < n; dev++)
		show_device(s, dev);
	return 0;
}

static int suspend(void)
{
	return shim() ? cudbgshim_session_suspend_all(m.session) : -ENODEV;
}

static int resume(void)
{
	return shim() ? cudbgshim_session_resume_all(m.session) : -ENODEV;
}

static void count_state(uint32_t dev, const char *how, const struct cudbgshim_state *st, int rc,
			uint64_t since)
{
	unsigned warps = 0, lanes = 0;
	size_t n = rc < 0 ? 0 : (size_t)st->n_sms * st->n_warps;

	for (size_t i = 0; i < n; i++) {
		warps += st->warps[i].valid_lanes != 0;
		lanes += (unsigned)__builtin_popcount(st->warps[i].active_lanes);
	}
	say("\"state\": \"%s\", \"device\": %u, \"errno\": %d, \"warps\": %u, \"active_lanes\": %u, "
	    "\"took_us\": %" PRIu64, how, dev, rc, warps, lanes, (clock_now_ns() - since) / 1000);
}

/* The first warp of the device of which some lanes do not execute.  @return whether there is one. */
static bool find_apart(const struct cudbgshim_state *st, uint32_t *sm, uint32_t *warp)
{
	for (*sm = 0; *sm < st->n_sms; ++*sm)
		for (uint64_t left = st->valid_warps[*sm]; left; left &= left - 1) {
			*warp = (uint32_t)__builtin_ctzll(left);
			const struct cudbgshim_warp *w = &st->warps[cudbgshim_state_index(st, *sm, *warp)];

			if (w->valid_lanes & ~w->active_lanes)
				return true;
		}
	return false;
}

/* What getCbuWarpState says of it, and where its lanes are; nothing where the release has no such call. */
static void show_convergence(struct cudbgshim *s, uint32_t dev, const struct cudbgshim_state *st)
{
	uint32_t words[1][CUDBGSHIM_CONVERGENCE_WORDS], sm, warp;
	char text[CUDBGSHIM_CONVERGENCE_WORDS * 14 + 1], pcs[CUDBGSHIM_MAX_LANES * 22 + 1];
	const uint64_t since = clock_now_ns();
	size_t at = 0, end = 0;
	int rc;

	if (!find_apart(st, &sm, &warp))
		return;
	rc = cudbgshim_read_convergence(s, dev, sm, UINT64_C(1) << warp, words);
	if (rc == -ENOSYS)
		return;
	for (size_t i = 0; rc == 0 && i < CUDBGSHIM_CONVERGENCE_WORDS; i++)
		at += (size_t)snprintf(text + at, sizeof(text) - at, "%s\"0x%" PRIx32 "\"", i ? ", " : "", words[0][i]);
	for (size_t i = 0; i < st->n_lanes && i < CUDBGSHIM_MAX_LANES; i++)
		end += (size_t)snprintf(pcs + end, sizeof(pcs) - end, "%s\"0x%" PRIx64 "\"", i ? ", " : "",
					st->lane_pc[cudbgshim_state_index(st, sm, warp) * st->n_lanes + i]);
	say("\"convergence\": [%.*s], \"device\": %u, \"errno\": %d, \"pcs\": [%.*s], \"took_us\": %" PRIu64, (int)at, text, dev,
	    rc, (int)end, pcs, (clock_now_ns() - since) / 1000);
}

static void show_state(struct cudbgshim *s, uint32_t dev)
{
	struct cudbgshim_state_reader *reader;
	const struct cudbgshim_state *fast = NULL;
	struct cudbgshim_state *plain = NULL;
	uint64_t since = clock_now_ns();
	int rc = cudbgshim_state_reader_create(s, dev, &reader);

	if (rc < 0)
		return say("\"state\": \"reader\", \"errno\": %d", rc);
	rc = cudbgshim_state_reader_read(reader, &fast);
	count_state(dev, cudbgshim_state_reader_is_batched(reader) ? "batched" : "plain", fast, rc,
		    since);
	if (rc == 0)
		show_convergence(s, dev, fast);
	since = clock_now_ns();
	if (rc == 0)
		rc = cudbgshim_state_create(fast->n_sms, fast->n_warps, fast->n_lanes, &plain);
	if (rc == 0) {
		rc = cudbgshim_state_read_plain(s, dev, plain);
		count_state(dev, "call by call", plain, rc, since);
	}
	cudbgshim_state_destroy(plain);
	cudbgshim_state_reader_destroy(reader);
}

static int state(void)
{
	struct cudbgshim *s = shim();
	uint32_t n = 0;

	if (!s)
		return -ENODEV;
	cudbgshim_get_n_devices(s, &n);
	for (uint32_t dev = 0; dev < n; dev++)
		show_state(s, dev);
	return 0;
}

static int hold(void)
{
	say("\"holding\": true");
	while (getchar() != EOF)
		;
	return 0;
}

static int die(void)
{
	say("\"dying\": true");
	return raise(SIGKILL);
}

static int command(const char *word)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} commands[] = {
		{ "attach", attach },	{ "facts", facts },   { "suspend", suspend },
		{ "state", state },	{ "resume", resume }, { "detach", detach },
		{ "rescue", rescue },	{ "hold", hold },     { "variables", show_variables },
		{ "die", die },
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(commands[i].name, word))
			return commands[i].run();
	fprintf(stderr, "gpu_check_measure: no command %s\n", word);
	exit(2);
}

static struct cudbgshim_undo *map_undo(const char *path)
{
	auto_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *p = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(struct cudbgshim_undo)) == 0)
		p = mmap(NULL, sizeof(struct cudbgshim_undo), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		perror(path);
		exit(2);
	}
	return p;
}

static enum cudbgshim_path path_of(const char *name)
{
	static const char *const names[] = { "auto", "fd", "call", "legacy", "launch" };
	unsigned i = 4;

	while (i && strcmp(names[i], name))
		i--;
	return (enum cudbgshim_path)i;
}

static bool option(const char *word)
{
	const char *value = strchr(word, '=');

	if (!value++)
		return false;
	if (!strncmp(word, "libcuda=", 8))
		m.o.driver.path = value;
	else if (!strncmp(word, "path=", 5))
		m.o.path = path_of(value);
	else if (!strncmp(word, "capabilities=", 13))
		m.o.capabilities = (uint32_t)strtoul(value, NULL, 0);
	else if (!strncmp(word, "undo=", 5))
		m.o.undo = map_undo(value);
	else if (!strncmp(word, "left=", 5))
		m.o.is_left_suspended = true;
	else if (!strncmp(word, "die=", 4))
		m.die = value;
	else if (!strncmp(word, "refuse=", 7))
		m.refused = value;
	else if (!strncmp(word, "set=", 4))
		set_variable(value);
	else if (!strncmp(word, "calls=", 6))
		say("\"watching\": %s", watch_calls(value, m.refused) ? "false" : "true");
	else if (!strncmp(word, "sleep=", 6))
		usleep((useconds_t)atoi(value) * 1000);
	else
		return false;
	return true;
}

static void open_target(const char *text)
{
	char path[32];

	m.o.pid = atoi(text);
	snprintf(path, sizeof(path), "/proc/%d", m.o.pid);
	m.o.proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m.o.proc_fd < 0) {
		perror(path);
		exit(2);
	}
	m.o.pidfd = (int)syscall(SYS_pidfd_open, m.o.pid, 0);
	m.o.memory = cudbgshim_memory_from_fd(openat(m.o.proc_fd, "mem", O_RDWR | O_CLOEXEC));
	m.o.trace = on_step;
	m.o.on_event = on_event;
	m.o.driver.trace = (struct cudbgshim_trace){ on_enter, on_leave, NULL };
}

int main(int argc, char **argv)
{
	int rc = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: gpu_check_measure PID [OPTION=VALUE...] COMMAND...\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	m.start = clock_now_ns();
	open_target(argv[1]);
	for (int i = 2; i < argc; i++) {
		int r = option(argv[i]) ? 0 : command(argv[i]);

		if (r < 0)
			say("\"failed\": \"%s\", \"errno\": %d", quoted(argv[i]), r);
		/* What was begun is ended all the same. */
		if (r < 0 && !rc)
			rc = r;
	}
	cudbgshim_session_destroy(m.session);
	return rc < 0 ? 1 : 0;
}
