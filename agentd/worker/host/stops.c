/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/stops.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "agentd/ipc/child.h"
#include "agentd/ipc/worker_tracer.h"
#include "agentd/tracer/start.h"
#include "agentd/worker/host/reading.h"
#include "agentd/worker/host/system_call.h"
#include "agentd/worker/process/facts.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "corefile/processor.h"
#include "hoststack/native/processor.h"

/* The tracer answers or ends within 0.75 s; a busy machine may take longer to run it. */
#define ANSWER_MS 1500

#define LOOKS	5
#define LOOK_NS 100000

/* Why threads were not stopped, or not read. */
enum refusal { CALL, WAIT, BUDGET, TIME, TRACED, GONE, REFUSALS };

static const char *const why[REFUSALS] = {
	[CALL] = "a stop could end the system call that waits there",
	[WAIT] = "no stop interrupts such a wait, nor what is stopped already",
	[BUDGET] = "the time for stops was used up",
	[TIME] = "there was no time left",
	[TRACED] = "another debugger is there, or the kernel does not let this process be traced",
	[GONE] = "the tracer has ended: a thread did not stop, or could not be read, in time",
};

int stops_open(struct stops *s, const struct access_target *facts)
{
	char path[32];
	auto_close int proc_fd = -1;
	uint64_t start;
	int r = process_facts_start(facts->pid, &start);

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%d", (int)facts->pid);
	proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	s->block = malloc(IPC_TRACER_SAMPLE_MAX);
	r = proc_fd < 0 ? -errno : !s->block ? -ENOMEM : 0;
	if (r == 0)
		r = tracer_start(facts, start, proc_fd, IPC_FD_TARGET, &s->pid, &s->sock);
	if (r < 0)
		stops_close(s);
	return r;
}

void stops_close(struct stops *s)
{
	if (s->sock >= 0)
		close(s->sock);
	tracer_reap(s->pid);
	free(s->block);
	*s = (struct stops){ .sock = -1 };
}

/* ------------------------------------------------------------------ one thread --------------- */

/* @return what the tracer says; -EPIPE: there is none any more. */
static int ask(struct stops *s, const struct ipc_tracer_call *c, struct ipc_tracer_answer *ret)
{
	struct iovec v[] = { { ret, sizeof(*ret) }, { s->block, IPC_TRACER_SAMPLE_MAX } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	struct pollfd p = { .fd = s->sock, .events = POLLIN };
	ssize_t n;

	if (fd_send(s->sock, c, sizeof(*c), NULL, 0) < 0 || poll(&p, 1, ANSWER_MS) != 1)
		return -EPIPE;
	n = recvmsg(s->sock, &m, MSG_DONTWAIT);
	if (n < (ssize_t)sizeof(*ret) || (m.msg_flags & MSG_TRUNC) || ret->size != (size_t)n - sizeof(*ret) ||
	    ret->registers > ret->size)
		return -EPIPE;
	return ret->result;
}

/* See where a thread is, which the kernel may tell the tracer alone.  @return as ask(). */
static int look(struct stops *s, struct task *task)
{
	const struct ipc_tracer_call c = { .verb = IPC_TRACER_PLACE, .tid = (int32_t)task->tid };
	struct ipc_tracer_answer a;
	char text[IPC_TRACER_PLACE_MAX];
	int e = ask(s, &c, &a);

	if (e < 0)
		return e;
	snprintf(text, sizeof(text), "%.*s", (int)a.size, (const char *)s->block);
	task_take_call(task, text);
	return 0;
}

/* A thread that has begun such a call since it was looked at gets EINTR; who asked for the stop has to know. */
static void note_interrupted(struct stops *s, struct reading *r, const struct task *task, const uint64_t *words)
{
	const struct corefile_processor *p = corefile_processor_find(r->tasks->machine);
	uint8_t code[8];
	const struct hoststack_piece piece = { .address = words[p->instruction] - 4, .buf = code,
					       .size = sizeof(code) };
	const bool has_code = p->needs_code && r->memory.read(r->memory.ctx, &piece, 1) == 0;
	struct corefile_call call;

	if (words[p->dwarf[0]] != (uint64_t)-EINTR || !p->has_waited(words, has_code ? code : NULL, &call))
		return;
	pthread_mutex_lock(&r->mutex);
	if (s->n_interrupted < STOPS_INTERRUPTED_MAX)
		s->interrupted[s->n_interrupted] = (struct stops_interrupted){ task->tid, call.number };
	s->n_interrupted++;
	pthread_mutex_unlock(&r->mutex);
}

static void publish(struct reading *r, size_t index, const struct native_stack *stack)
{
	pthread_mutex_lock(&r->mutex);
	free(r->rows[index].native.places);
	r->rows[index].native = *stack;
	pthread_mutex_unlock(&r->mutex);
}

static int unwind(struct stops *s, struct reading *r, size_t index, const struct ipc_tracer_answer *a)
{
	const struct corefile_processor *p = corefile_processor_find(r->tasks->machine);
	const uint8_t *stack = s->block + a->registers;
	struct native_registers registers = { .known = 0 };
	uint64_t words[COREFILE_WORDS_MAX];
	struct native_stack ret;
	int e;

	/* A program of 32 bits has fewer, and code that is not unwound. */
	if (a->registers != p->n_words * sizeof(*words))
		return 0;
	memcpy(words, s->block, a->registers);
	for (unsigned i = 0; i < p->n_dwarf; i++)
		native_registers_set(&registers, i, words[p->dwarf[i]]);
	note_interrupted(s, r, &r->tasks->list[index], words);
	e = native_reader_read_copy(&r->native, &registers, a->begin, stack, a->size - a->registers, &ret);
	if (e == 0)
		publish(r, index, &ret);
	return e;
}

/* @return 0; -errno of the tracer. */
static int stop(struct stops *s, struct reading *r, size_t index, struct ipc_tracer_answer *ret)
{
	const struct corefile_processor *p = corefile_processor_find(r->tasks->machine);
	const struct ipc_tracer_call c = { .verb = IPC_TRACER_SAMPLE, .tid = (int32_t)r->tasks->list[index].tid,
					   .number = (int32_t)(p->stack_pointer * sizeof(uint64_t)) };
	int e = ask(s, &c, ret);

	if (e == -EPIPE)
		return e;
	pthread_mutex_lock(&r->mutex);
	s->stopped_us += ret->stopped_us;
	s->n += ret->stopped_us > 0;
	pthread_mutex_unlock(&r->mutex);
	return e;
}

/* ------------------------------------------------------------------ all of them -------------- */

/* Would registers tell more than is known? */
static bool lacks_frames(const struct native_stack *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->places[i].frame.is_guessed)
			return true;
	return s->end == RPC_NATIVE_END_RUNNING || s->end == RPC_NATIVE_END_UNPROVEN ||
	       s->end == RPC_NATIVE_END_REGISTER || s->end == RPC_NATIVE_END_AMBIGUOUS ||
	       s->end == RPC_NATIVE_END_REFUSED;
}

/*
 * A thread that runs may be one that mostly waits, and was met between two calls: so it is looked at for a while.
 * @return whether it is in no call, or in one with which the kernel goes on after a stop.
 */
static bool calls_go_on(struct stops *s, const struct reading *r, const struct task *task)
{
	const struct timespec nap = { .tv_nsec = LOOK_NS };
	/* What is told of the thread stays of the moment at which its waits were read. */
	struct task now = *task;

	for (int i = 0; i < LOOKS && look(s, &now) == 0; i++) {
		if (now.is_off && now.has_call)
			return system_call_restarts(r->tasks->machine, &now);
		nanosleep(&nap, NULL);
	}
	return true;
}

/* @return whether it may be stopped; else @p ret says why not, or REFUSALS: it has ended. */
static bool may_stop(struct stops *s, const struct reading *r, const struct task *task, enum refusal *ret)
{
	const char state = task_state(r->tasks, task);

	*ret = REFUSALS;
	if (state == 'Z' || state == 'X')
		return false;
	*ret = WAIT;
	if (state != 'R' && state != 'S')
		return false;
	*ret = CALL;
	return calls_go_on(s, r, task);
}

static int read_one(struct stops *s, struct reading *r, size_t index, uint32_t refused[REFUSALS])
{
	struct ipc_tracer_answer a;
	enum refusal refusal;
	int e;

	if (!may_stop(s, r, &r->tasks->list[index], &refusal)) {
		if (refusal != REFUSALS)
			refused[refusal]++;
		return 0;
	}
	e = stop(s, r, index, &a);
	if (e == 0)
		return unwind(s, r, index, &a);
	if (e == -ETIMEDOUT || e == -EPIPE || e == -ESTALE) {
		refused[GONE]++;
		close(TAKE_FD(s->sock));
	} else if (e != -ESRCH) {
		refused[TRACED]++;
	}
	return 0;
}

int stops_read(struct stops *s, struct reading *r)
{
	uint32_t refused[REFUSALS] = { 0 };
	int e = 0;

	if (!corefile_processor_find(r->tasks->machine))
		return 0;
	for (size_t i = 0; i < r->tasks->n && e == 0; i++) {
		if (!lacks_frames(&r->rows[i].native))
			continue;
		if (s->sock < 0)
			refused[GONE]++;
		else if (s->stopped_us >= s->budget_us)
			refused[BUDGET]++;
		else if (clock_now_ns() >= r->memory.deadline_ns)
			refused[TIME]++;
		else
			e = read_one(s, r, i, refused);
	}
	for (size_t i = 0; i < REFUSALS; i++)
		if (refused[i])
			reading_note(r, "stops: %u %s not stopped: %s", refused[i], refused[i] == 1 ? "thread was" : "threads were",
				     why[i]);
	return e;
}
