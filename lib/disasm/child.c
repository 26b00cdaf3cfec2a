/* SPDX-License-Identifier: MIT */
/*
 * Runs LLVM in a process of its own, because LLVM aborts on a processor that it does not know and
 * was hardly ever given bytes that no assembler made.  Attempts to find a library are numbered:
 * processors times libraries.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "disasm/backend.h"
#include "disasm/confine.h"

#define LOAD_MS	   20000 /* A hundred megabytes may come from a slow disk. */
#define ANSWER_MS  5000
#define CPU_S	   60
#define RESTARTS   8
#define MEASURE_MAX 4096u
#define CHANNEL_FD 3

enum hello_what {
	HELLO_TRYING,
	HELLO_READY,
	HELLO_NONE, /* No attempts are left. */
};

struct hello {
	uint32_t what;
	uint32_t attempt;
	char library[DISASM_LLVM_NAME_SIZE];
};

struct request {
	uint64_t address;
	uint32_t size;
	uint32_t measure; /* Whether lengths are asked for instead of one text. */
	uint8_t bytes[MEASURE_MAX];
};

struct reply {
	uint32_t n; /* Bytes of the instruction, or number of lengths. */
	union {
		char text[DISASM_TEXT_SIZE];
		uint8_t sizes[MEASURE_MAX / 4];
	};
};

struct child {
	char cpu[32];
	uint32_t lanes;
	char *library; /* The library that was asked for, or NULL. */
	pid_t pid;     /* 0: there is none. */
	int fd;
	uint32_t attempt; /* Number of the attempt that works, or of the next to try. */
	unsigned int restarts;
	bool found; /* Whether a library was found, which need not know the processor. */
	char source[DISASM_LLVM_NAME_SIZE];
	char note[400];
	struct request request;
	struct reply reply;
};

/*
 * Names a processor that an older library knows in place of one that it does not know: the
 * instructions are the same, or fewer (LLVM, User Guide for AMDGPU, "Processors").
 */
static const char *relative_of(const char *cpu)
{
	static const char *const rows[][2] = { { "gfx941", "gfx940" },
					       { "gfx942", "gfx940" },
					       { "gfx950", "gfx940" } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(cpu, rows[i][0]))
			return rows[i][1];
	return NULL;
}

/* ------------------------------------------------------------------ in the child ------------- */

static void tell(enum hello_what what, uint32_t attempt, const char *library)
{
	struct hello h = { .what = what, .attempt = attempt };

	str_copy(h.library, sizeof(h.library), library);
	if (send(CHANNEL_FD, &h, sizeof(h), MSG_NOSIGNAL) != sizeof(h))
		_exit(0);
}

/* LLVM complains on stderr, which is a memory file here, when it does not know a processor. */
static bool has_complained(void)
{
	return lseek(STDERR_FILENO, 0, SEEK_END) > 0;
}

static bool attempt(const struct child *c, const char *cpu, size_t i, uint32_t number,
		    struct disasm_llvm *ret)
{
	char name[DISASM_LLVM_NAME_SIZE];

	disasm_llvm_name(c->library, i, name);
	if (disasm_llvm_load(name, ret) < 0)
		return false;
	tell(HELLO_TRYING, number, name);
	/* The next attempt needs a process whose stderr is without these complaints. */
	if (disasm_llvm_choose(ret, cpu, c->lanes) < 0 || has_complained())
		_exit(1);
	tell(HELLO_READY, number, name);
	return true;
}

static size_t count_names(const char *library)
{
	char name[DISASM_LLVM_NAME_SIZE];
	size_t n = 0;

	while (disasm_llvm_name(library, n, name))
		n++;
	return n;
}

static bool find_llvm(const struct child *c, struct disasm_llvm *ret)
{
	const char *cpus[] = { c->cpu, relative_of(c->cpu) };
	size_t n_names = count_names(c->library);

	for (size_t i = c->attempt; i < n_names * ARRAY_SIZE(cpus); i++) {
		const char *cpu = cpus[i / n_names];

		if (cpu && attempt(c, cpu, i % n_names, (uint32_t)i, ret))
			return true;
	}
	return false;
}

static uint32_t decode_here(const struct disasm_llvm *l, const uint8_t *bytes, size_t size,
			    uint64_t address, char *text)
{
	return disasm_llvm_decode(l, bytes, size < DISASM_LONGEST ? (uint32_t)size : DISASM_LONGEST,
				  address, text);
}

/*
 * Measure instructions as long as the longest one would still lie within the bytes: a shorter rest
 * may be the beginning of one.
 */
static uint32_t measure_here(const struct disasm_llvm *l, const struct request *q, uint8_t *sizes)
{
	char text[DISASM_TEXT_SIZE];
	uint32_t n = 0, at = 0;

	while (at + DISASM_LONGEST <= q->size) {
		uint32_t size = decode_here(l, q->bytes + at, q->size - at, q->address + at, text);

		sizes[n++] = (uint8_t)size;
		at += size ? size : 4;
	}
	return n;
}

static void serve(const struct disasm_llvm *l)
{
	static struct request q;
	static struct reply a;

	while (recv(CHANNEL_FD, &q, sizeof(q), 0) == sizeof(q) && q.size <= sizeof(q.bytes)) {
		memset(&a, 0, sizeof(a));
		a.n = q.measure ? measure_here(l, &q, a.sizes) :
				  decode_here(l, q.bytes, q.size, q.address, a.text);
		if (send(CHANNEL_FD, &a, sizeof(a), MSG_NOSIGNAL) != sizeof(a))
			break;
	}
}

static int settle_in(int fd, pid_t parent)
{
	int quiet = memfd_create("disasm", 0), null = memfd_create("null", 0);
	const int fds[] = { null, null, quiet, fd };

	_Static_assert(ARRAY_SIZE(fds) == CHANNEL_FD + 1, "the channel comes last");
	return quiet < 0 || null < 0 ? -errno :
				       disasm_settle(fds, ARRAY_SIZE(fds), CPU_S, parent);
}

static void child_main(const struct child *c, int fd, pid_t parent)
{
	struct disasm_llvm llvm;

	if (settle_in(fd, parent) < 0)
		_exit(1);
	if (!find_llvm(c, &llvm))
		tell(HELLO_NONE, 0, "");
	else if (disasm_confine() == 0)
		serve(&llvm);
	_exit(0);
}

/* ------------------------------------------------------------------ in the parent ------------ */

static void end(struct child *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	c->pid = 0;
}

static int start(struct child *c)
{
	pid_t parent = getpid();
	int fds[2];
	int r = fd_socketpair(0, fds);

	if (r < 0)
		return r;
	c->pid = fork();
	if (c->pid == 0)
		child_main(c, fds[1], parent);
	r = c->pid < 0 ? -errno : 0;
	close(fds[1]);
	c->fd = fds[0];
	if (r < 0)
		end(c);
	return r;
}

/*
 * Wait for a message.
 * @return whether a whole one came in time.
 */
static bool receive(struct child *c, void *data, size_t size, uint64_t deadline_ns)
{
	for (;;) {
		struct pollfd p = { .fd = c->fd, .events = POLLIN };
		int r = poll(&p, 1, (int)clock_left_ms(deadline_ns));

		if (r < 0 && errno == EINTR)
			continue;
		return r > 0 && recv(c->fd, data, size, MSG_DONTWAIT) == (ssize_t)size;
	}
}

/*
 * Wait until the child has found a library.
 * @return 1 it is ready, 0 nothing is left to try, -EAGAIN this attempt failed.
 */
static int await(struct child *c, struct hello *ret)
{
	uint64_t deadline_ns = clock_deadline_ms(LOAD_MS);
	uint32_t next = UINT32_MAX;

	while (receive(c, ret, sizeof(*ret), deadline_ns)) {
		ret->library[sizeof(ret->library) - 1] = '\0';
		if (ret->what == HELLO_READY) {
			c->attempt = ret->attempt;
			return 1;
		}
		if (ret->what != HELLO_TRYING)
			return 0;
		/*
		 * The first library that was tried is the newest, and the one worth naming if all
		 * fail.
		 */
		if (!c->found)
			str_copy(c->source, sizeof(c->source), ret->library);
		c->found = true;
		next = ret->attempt + 1;
	}
	if (next == UINT32_MAX || next <= c->attempt)
		return 0;
	c->attempt = next;
	return -EAGAIN;
}

static void note_ready(struct child *c, const char *library)
{
	size_t n_names = count_names(c->library);
	const char *cpu = c->attempt < n_names ? c->cpu : relative_of(c->cpu);

	str_copy(c->source, sizeof(c->source), library);
	if (cpu && cpu != c->cpu)
		snprintf(c->note, sizeof(c->note),
			 "%s does not know %s; shown as instructions of %s", library, c->cpu, cpu);
}

static void note_none(struct child *c)
{
	if (c->found)
		snprintf(c->note, sizeof(c->note),
			 "%s does not know %s: instructions are shown as words", c->source, c->cpu);
	else if (c->library)
		snprintf(c->note, sizeof(c->note),
			 "%.200s is no LLVM with AMDGPU support: instructions are shown as words",
			 c->library);
	else
		snprintf(c->note, sizeof(c->note),
			 "no LLVM library found: instructions are shown as words");
}

static int begin(struct child *c)
{
	struct hello hello;
	int r;

	do {
		r = start(c);
		if (r < 0)
			return r;
		r = await(c, &hello);
		if (r <= 0)
			end(c);
	} while (r == -EAGAIN);
	if (r == 1)
		note_ready(c, hello.library);
	else
		note_none(c);
	return 0;
}

/* Replace a child that crashed or hangs, unless that happens too often. */
static void begin_again(struct child *c)
{
	end(c);
	if (c->restarts++ < RESTARTS && begin(c) == 0 && c->pid)
		return;
	end(c);
	snprintf(c->note, sizeof(c->note), "LLVM failed too often: the rest is shown as words");
}

static bool ask(struct child *c, const uint8_t *bytes, uint32_t size, uint64_t address,
		bool measure)
{
	struct request *q = &c->request;

	if (!c->pid)
		return false;
	memset(q, 0, sizeof(*q));
	q->address = address;
	q->size = size;
	q->measure = measure;
	memcpy(q->bytes, bytes, size);
	if (send(c->fd, q, sizeof(*q), MSG_NOSIGNAL) == sizeof(*q) &&
	    receive(c, &c->reply, sizeof(c->reply), clock_deadline_ms(ANSWER_MS)))
		return true;
	begin_again(c);
	return false;
}

static uint32_t child_decode(void *ctx, const uint8_t *bytes, uint32_t size, uint64_t address,
			     char *ret_text)
{
	struct child *c = ctx;

	if (!ask(c, bytes, size, address, false) || c->reply.n > size)
		return 0;
	memcpy(ret_text, c->reply.text, DISASM_TEXT_SIZE);
	ret_text[DISASM_TEXT_SIZE - 1] = '\0';
	return c->reply.n;
}

static size_t child_measure(void *ctx, const uint8_t *bytes, size_t size, uint64_t address,
			    uint8_t *ret_sizes, size_t capacity)
{
	struct child *c = ctx;
	size_t n;

	if (!ask(c, bytes, size < MEASURE_MAX ? (uint32_t)size : MEASURE_MAX, address, true))
		return 0;
	n = c->reply.n < sizeof(c->reply.sizes) ? c->reply.n : sizeof(c->reply.sizes);
	if (n > capacity)
		n = capacity;
	memcpy(ret_sizes, c->reply.sizes, n);
	return n;
}

static const char *child_source(void *ctx)
{
	struct child *c = ctx;

	return c->pid ? c->source : NULL;
}

static const char *child_note(void *ctx)
{
	struct child *c = ctx;

	return c->note[0] ? c->note : NULL;
}

static void child_close(void *ctx)
{
	struct child *c = ctx;

	if (!c)
		return;
	end(c);
	free(c->library);
	free(c);
}

int disasm_child_open(const struct disasm_options *o, void **ret_ctx)
{
	struct child *c = calloc(1, sizeof(*c));
	int r = 0;

	if (!c)
		return -ENOMEM;
	c->fd = -1;
	c->lanes = o->lanes;
	str_copy(c->cpu, sizeof(c->cpu), o->cpu);
	if (o->library) {
		c->library = strdup(o->library);
		r = c->library ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = begin(c);
	if (r < 0)
		child_close(c);
	else
		*ret_ctx = c;
	return r;
}

const struct disasm_backend disasm_child = {
	.decode = child_decode,
	.measure = child_measure,
	.source = child_source,
	.note = child_note,
	.close = child_close,
};
