/* SPDX-License-Identifier: MIT */
/*
 * Fuzzes the state machine with arbitrary sequences of opens, ioctls, control lines, signals and
 * deaths, on a made-up machine of four processes with one page of memory each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "control.h"
#include "fuzzlib.h"
#include "sim/kfd/device/topology.h"

#define PROCESSES 4
#define FILES	  8
#define PAGE	  4096
#define STEPS_MAX 256

static struct {
	uint64_t now;
	bool alive[PROCESSES];
	unsigned int epoch[PROCESSES];
	int tracer[PROCESSES];
	uint8_t memory[PROCESSES][PAGE];
	uint8_t store[PAGE];
	struct sim_file files[FILES];
	bool open[FILES];
} world;

/* ---- the made-up machine: process i is number i + 1, its page starts at PAGE ---- */

static bool is_process(int tgid)
{
	return tgid >= 1 && tgid <= PROCESSES;
}

static uint64_t now_ns(void)
{
	return world.now;
}

static int task_find(int caller_tid, uint32_t pid, struct sim_task *ret)
{
	int tgid = (int)pid;

	if (pid > PROCESSES || !is_process(tgid))
		return -ESRCH;
	*ret = (struct sim_task){ tgid, tgid, world.tracer[tgid - 1], world.tracer[tgid - 1],
				  world.alive[tgid - 1] };
	return 0;
}

static int tgid_of(int tid, int *ret)
{
	*ret = tid;
	return 0;
}

/* A grip: pidfd is the process, mem_fd which of its successive lives. */
static int hold(int tgid, struct sim_hold *ret)
{
	if (!is_process(tgid) || !world.alive[tgid - 1])
		return -ESRCH;
	*ret = (struct sim_hold){ tgid - 1, (int)world.epoch[tgid - 1] };
	return 0;
}

static void hold_release(struct sim_hold *h)
{
	*h = SIM_HOLD_NULL;
}

static bool holds(const struct sim_hold *h)
{
	return world.alive[h->pidfd] && world.epoch[h->pidfd] == (unsigned int)h->mem_fd;
}

static uint8_t *memory_at(int tgid, uint64_t addr, size_t size)
{
	if (!is_process(tgid) || addr < PAGE || addr > 2 * PAGE || size > 2 * PAGE - addr)
		return NULL;
	return world.memory[tgid - 1] + (addr - PAGE);
}

static int mem_read(int tgid, uint64_t addr, void *buf, size_t size)
{
	const uint8_t *p = memory_at(tgid, addr, size);

	if (p)
		memcpy(buf, p, size);
	return p ? 0 : -EFAULT;
}

static void mem_read_pieces(int tgid, struct sim_piece *pieces, size_t n, size_t size)
{
	for (size_t i = 0; i < n; i++)
		pieces[i].is_read = !mem_read(tgid, pieces[i].addr, pieces[i].buf, size);
}

static int mem_write(int tgid, uint64_t addr, const void *buf, size_t size)
{
	uint8_t *p = memory_at(tgid, addr, size);

	if (p)
		memcpy(p, buf, size);
	return p ? 0 : -EFAULT;
}

static bool shares_memory(int tgid, int other)
{
	return false;
}

static int leader_tracer(int tgid)
{
	struct sim_task task;

	return task_find(tgid, (uint32_t)tgid, &task) ? 0 : task.leader_tracer;
}

static int fd_take(int tid, int fd, int *ret)
{
	*ret = fd & 0xff;
	return fd < 0 ? -EBADF : 0;
}

static void fd_close(int fd)
{
}

static void notify(int fd, int writer)
{
}

static bool is_dying(int tid)
{
	return tid & 1;
}

/* The store: wherever it is read, it is one page, which is written, too. */
static int store_read(uint64_t offset, void *buf, size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)buf)[i] = world.store[(offset + i) % PAGE];
	return 0;
}

static int store_write(uint64_t offset, const void *buf, size_t size)
{
	for (size_t i = 0; i < size; i++)
		world.store[(offset + i) % PAGE] = ((const uint8_t *)buf)[i];
	return 0;
}

static void store_free(uint64_t offset, uint64_t size)
{
}

static uint64_t store_used(void)
{
	return PAGE;
}

static const struct sim_os fake_os = {
	now_ns, task_find, tgid_of, hold, hold_release, holds, mem_read, mem_read_pieces, mem_write,
	shares_memory, leader_tracer, fd_take,
	fd_close, notify, is_dying, store_read, store_write, store_free, store_used,
};

/* ---- steps ---- */

static void complete(struct sim_call *call, int result)
{
	if (result == SIM_LATER)
		abort();
	free(call->arg);
	free(call);
}

static void do_call(struct sim *s, struct reader *r, uint32_t command)
{
	unsigned int f = reader_u8(r) % FILES;
	size_t size = 512;
	struct sim_call *call;

	if (!world.open[f])
		return;
	call = calloc(1, sizeof(*call));
	if (!call)
		return;
	call->arg = calloc(1, size);
	if (!call->arg) {
		free(call);
		return;
	}
	call->file = &world.files[f];
	call->tid = call->tgid = world.files[f].tgid;
	call->command = command;
	call->arg_size = size;
	call->complete = complete;
	reader_copy(r, call->arg, 8);
	if (command == KFDABI_NR_DBG_TRAP) {
		struct kfdabi_dbg_args *a = call->arg;

		a->pid %= PROCESSES + 2;
		a->op %= KFDABI_DBG_OP_COUNT + 1;
	}
	reader_copy(r, (uint8_t *)call->arg + 8, reader_left(r) < 24 ? reader_left(r) : 24);
	sim_submit(s, call);
}

/* Make a queue that passes the checks, so that sequences get somewhere. */
static void do_create(struct sim *s, struct reader *r)
{
	unsigned int f = reader_u8(r) % FILES;
	struct kfdabi_create_queue_args *a;
	struct sim_call *call;

	if (!world.open[f])
		return;
	call = calloc(1, sizeof(*call));
	a = calloc(1, sizeof(*a));
	if (!call || !a) {
		free(call);
		free(a);
		return;
	}
	a->gpu_id = s->gpus[reader_u8(r) % s->n_gpus].gpu_id;
	a->queue_type = reader_u8(r) % 5;
	a->queue_percentage = 100;
	a->ring_base_address = PAGE;
	a->read_pointer_address = PAGE + reader_u8(r);
	a->write_pointer_address = PAGE + 0x200 + reader_u8(r);
	a->ctx_save_restore_address = PAGE + 0x400;
	a->ctx_save_restore_size = 0xc00;
	a->ctl_stack_size = 0x80;
	call->file = &world.files[f];
	call->tid = call->tgid = world.files[f].tgid;
	call->command = KFDABI_NR_CREATE_QUEUE;
	call->arg = a;
	call->complete = complete;
	sim_submit(s, call);
}

static void do_control(struct sim *s, struct reader *r)
{
	size_t left = reader_left(r);
	const char *text = reader_bytes(r, left);
	const char *end = text ? memchr(text, 0, left) : NULL;

	if (!text)
		return;
	control_run(s, text, end ? (size_t)(end - text) : left);
	/* The next steps are behind the text's NUL. */
	if (end)
		reader_init(r, end + 1, left - (size_t)(end - text) - 1);
}

static void do_open(struct sim *s, struct reader *r)
{
	unsigned int f = reader_u8(r) % FILES;
	int tgid = 1 + reader_u8(r) % PROCESSES;

	if (world.open[f]) {
		struct sim_call *call;

		/* The kernel keeps a file while a call on it is in flight. */
		TAILQ_FOREACH(call, &s->pending, link)
			if (call->file == &world.files[f])
				return;
		sim_close(s, &world.files[f]);
		world.open[f] = false;
	} else if (world.alive[tgid - 1]) {
		world.open[f] = !sim_open(s, tgid, &world.files[f]);
	}
}

/* Let a process die, start again or call exec. */
static void do_life(struct reader *r)
{
	unsigned int p = reader_u8(r) % PROCESSES;

	world.epoch[p]++;
	world.alive[p] = !(world.epoch[p] & 1) || !world.alive[p];
	world.tracer[p] = reader_u8(r) % (PROCESSES + 1);
}

static void list_each(void *data, const char *name, uint64_t ino)
{
	*(uint64_t *)data = ino;
}

static void do_look(struct sim *s, struct reader *r)
{
	uint64_t last = reader_u64(r);
	auto_out struct out o;

	out_init(&o, 0);
	tree_list(s, last, list_each, &last);
	if (tree_kind_of(s, last) == TREE_FILE)
		tree_render(s, last, &o);
	control_status(s, &o);
}

static void step(struct sim *s, struct reader *r)
{
	struct sim_call *call;
	unsigned int skip;

	switch (reader_u8(r) % 10) {
	case 0:
	case 1:
		do_open(s, r);
		break;
	case 2:
	case 3:
		do_call(s, r, KFDABI_NR_DBG_TRAP);
		break;
	case 4:
		do_call(s, r, reader_u8(r));
		break;
	case 5:
		do_create(s, r);
		break;
	case 6:
		skip = reader_u8(r) % 4;
		TAILQ_FOREACH(call, &s->pending, link)
			if (!skip--)
				break;
		if (call)
			sim_interrupt(s, call);
		break;
	case 7:
		do_life(r);
		break;
	case 8:
		world.now += (uint64_t)reader_u16(r) * 1000000;
		sim_tick(s);
		do_look(s, r);
		break;
	default:
		do_control(s, r);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const gpus[] = { "gfx906", "gfx942", "gfx1100" };
	static struct sim s;
	struct reader r;

	reader_init(&r, data, size);
	memset(&world, 0, sizeof(world));
	for (int i = 0; i < PROCESSES; i++)
		world.alive[i] = true;
	world.tracer[1] = world.tracer[2] = 1;
	sim_init(&s, &fake_os, kernel_profile_at(1 + reader_u8(&r) % 5));
	s.has_store = true;
	for (size_t i = 0; i < 3; i++)
		sim_gpu_add(&s, gpu_profile_find(gpus[i], strlen(gpus[i])));
	for (int i = 0; i < STEPS_MAX && reader_left(&r); i++)
		step(&s, &r);
	sim_interrupt_all(&s);
	for (int f = 0; f < FILES; f++)
		if (world.open[f])
			sim_close(&s, &world.files[f]);
	sim_deinit(&s);
	return 0;
}
