/* SPDX-License-Identifier: MIT */
/* One short stop of one thread, in one piece: no message of the worker is waited for meanwhile. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>

#include "agentd/tracer/tracer.h"
#include "base/clock.h"

/* A thread that runs stops as soon as it has a processor, which a busy machine may take long to give it. */
#define WAIT_MS 500
/* We may be the one who has none. */
#define STOP_MS 700
/* Reading it takes microseconds.  A page that never comes, as the program can arrange, would keep us in the kernel. */
#define READ_MS 50
#define LOOK_NS 20000

/* The signal ends this process, also while it waits in the kernel for a page. */
static void end_after(unsigned ms)
{
	const struct itimerval t = { .it_value = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 } };

	setitimer(ITIMER_REAL, &t, NULL);
}

/* @param begin  In: when it was interrupted; out: when it still ran. */
static struct cudbgshim_stop wait_for_stop(struct tracer *t, pid_t tid, uint64_t *begin)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	const uint64_t deadline = clock_deadline_ms(WAIT_MS);
	uint64_t before = *begin;
	struct cudbgshim_stop stop;

	for (;;) {
		*begin = before;
		before = clock_now_ns();
		stop = tracer_look_at(t, tid);
		if (stop.kind != CUDBGSHIM_STOP_NONE || before >= deadline)
			return stop;
		ppoll(NULL, 0, &pause, NULL);
	}
}

static ssize_t read_memory(pid_t tid, uint64_t address, void *buf, size_t size)
{
	const struct iovec ours = { buf, size }, theirs = { (void *)(uintptr_t)address, size };

	return process_vm_readv(tid, &ours, 1, &theirs, 1, 0);
}

static void read_stack(struct tracer *t, pid_t tid, uint64_t stack_pointer, struct ipc_tracer_answer *ret)
{
	uint8_t *to = t->block + ret->registers;
	const size_t room = sizeof(t->block) - ret->registers;
	ssize_t n;

	ret->begin = stack_pointer - IPC_TRACER_RED_ZONE;
	n = read_memory(tid, ret->begin, to, room);
	/* The stack is as good as full. */
	if (n <= (ssize_t)IPC_TRACER_RED_ZONE) {
		ret->begin = stack_pointer;
		n = read_memory(tid, ret->begin, to, room);
	}
	ret->size = ret->registers + (n > 0 ? (uint32_t)n : 0);
}

static int read_stopped(struct tracer *t, const struct ipc_tracer_call *c, struct ipc_tracer_answer *ret)
{
	size_t size = IPC_TRACER_BLOCK_MAX;
	uint64_t stack_pointer;
	int r = TRACER_SYS->get(NULL, c->tid, CUDBGSHIM_PART_REGISTERS, t->block, &size);

	if (r < 0)
		return r;
	if (c->number < 0 || (size_t)c->number + sizeof(stack_pointer) > size)
		return -EINVAL;
	memcpy(&stack_pointer, t->block + c->number, sizeof(stack_pointer));
	ret->registers = (uint32_t)size;
	read_stack(t, c->tid, stack_pointer, ret);
	return 0;
}

/* @return whether it is traced no more.  A thread that is being killed has left the stop, which is as good. */
static bool let_go(struct tracer *t, pid_t tid, struct cudbgshim_stop stop)
{
	/* A signal for which it stopped is delivered now; nobody else would do that. */
	int r = TRACER_SYS->go(NULL, tid, CUDBGSHIM_GO_FREE, stop.kind == CUDBGSHIM_STOP_SIGNAL ? stop.sig : 0);

	if (r == -ESRCH)
		r = tracer_look_at(t, tid).kind == CUDBGSHIM_STOP_GONE ? 0 : r;
	if (r == 0)
		tracer_forget(t, tracer_find(t, tid));
	return r == 0;
}

static int stop_and_read(struct tracer *t, const struct ipc_tracer_call *c, struct ipc_tracer_answer *ret)
{
	uint64_t begin = clock_now_ns();
	int r = TRACER_SYS->interrupt(NULL, c->tid);
	struct cudbgshim_stop stop = wait_for_stop(t, c->tid, &begin);

	if (t->is_over)
		return -ESTALE;
	if (stop.kind == CUDBGSHIM_STOP_GONE) {
		tracer_forget(t, tracer_find(t, c->tid));
		return -ESRCH;
	}
	if (stop.kind == CUDBGSHIM_STOP_NONE) {
		/* It cannot be let go before it stops, but by our end. */
		t->is_over = true;
		return -ETIMEDOUT;
	}
	end_after(READ_MS);
	if (r == 0)
		r = read_stopped(t, c, ret);
	if (!let_go(t, c->tid, stop))
		t->is_over = true;
	ret->stopped_us = (uint32_t)((clock_now_ns() - begin) / 1000);
	return r;
}

int tracer_sample(struct tracer *t, const struct ipc_tracer_call *c, struct ipc_tracer_answer *ret)
{
	int r;

	/* A thread that is held for something else would wait for this one, too. */
	if (t->n_held)
		return -EBUSY;
	end_after(STOP_MS);
	r = tracer_seize(t, c->tid);
	if (r == 0)
		r = stop_and_read(t, c, ret);
	end_after(0);
	return r;
}
