/* SPDX-License-Identifier: MIT */
/* Copy queues: their pointers count bytes, and commands wrap with the ring. */
#include "work.h"

#include <errno.h>
#include <string.h>

#include "memory.h"
#include "sim/kfd/packet/sdma.h"

/* Commands of a queue before others have their turn. */
#define BURST 1024

/*
 * Do one command.
 * @return 0, -EAGAIN (it waits), -EFAULT with the address in *ret_fault.
 */
static int do_command(struct sim *s, struct sim_process *p, const struct sim_gpu *gpu,
		      const struct sdma_command *c, uint64_t *ret_fault)
{
	uint64_t value = c->value;
	struct sim_event *e;
	uint32_t word;

	*ret_fault = c->address;
	switch (c->kind) {
	case SDMA_NOTHING:
		return 0;
	case SDMA_COPY:
		return sim_memory_copy(s, p, gpu, c->address, c->source, c->size);
	case SDMA_FILL:
		return sim_memory_fill(s, p, gpu, c->address, (uint32_t)value, c->size);
	case SDMA_WRITE:
		word = (uint32_t)value;
		return sim_memory_write(s, p, gpu, c->address, &word, sizeof(word));
	case SDMA_ADD:
		if (sim_memory_read(s, p, gpu, c->address, &value, sizeof(value)))
			return -EFAULT;
		value += c->value;
		return sim_memory_write(s, p, gpu, c->address, &value, sizeof(value));
	case SDMA_TRAP:
		e = sim_event_find(p, (uint32_t)value);
		if (e)
			sim_event_signal(s, p, e);
		return 0;
	case SDMA_WAIT:
		if (sim_memory_read(s, p, gpu, c->address, &word, sizeof(word)))
			return -EFAULT;
		return sdma_wait_is_over(c, word) ? 0 : -EAGAIN;
	case SDMA_TIMESTAMP:
		value = s->os->now_ns() / 10;
		return sim_memory_write(s, p, gpu, c->address, &value, sizeof(value));
	}
	return 0;
}

/* Read the bytes of the next command, up to the longest one; they may wrap with the ring. */
static int read_command(struct sim *s, struct sim_process *p, const struct sim_queue *q, uint64_t rd,
			uint8_t *bytes, size_t size)
{
	uint64_t at = rd % q->args.ring_size, first = q->args.ring_size - at;

	if (first > size)
		first = size;
	if (sim_memory_read(s, p, q->device->gpu, q->args.ring_base_address + at, bytes, (size_t)first))
		return -EFAULT;
	return first == size ? 0
			     : sim_memory_read(s, p, q->device->gpu, q->args.ring_base_address,
					       bytes + first, size - (size_t)first);
}

/* @return 0 if a command was done, -EAGAIN, -errno if the queue is stopped. */
static int step(struct sim *s, struct sim_process *p, struct sim_queue *q, uint64_t *rd, uint64_t wr)
{
	uint8_t bytes[SDMA_COMMAND_MAX];
	size_t size = wr - *rd < sizeof(bytes) ? (size_t)(wr - *rd) : sizeof(bytes);
	uint64_t va = q->args.ring_base_address;
	struct sdma_command c;
	int r = read_command(s, p, q, *rd, bytes, size);

	if (!r)
		r = sdma_command_parse(bytes, size, &c);
	if (r == -ENOTSUP) {
		/* The engine hangs; nobody is told of it but by a reset. */
		q->broken = true;
		return r;
	}
	if (!r)
		r = do_command(s, p, q->device->gpu, &c, &va);
	if (!r) {
		*rd += c.length;
		va = q->args.read_pointer_address;
		r = sim_memory_write(s, p, q->device->gpu, va, rd, sizeof(*rd));
	}
	if (r == -EFAULT)
		sim_work_fault(s, p, q, va);
	return r;
}

void sim_work_copies(struct sim *s, struct sim_process *p, struct sim_queue *q)
{
	const struct sim_gpu *gpu = q->device->gpu;
	uint64_t rd, wr;

	if (q->broken || !q->args.ring_size ||
	    sim_memory_read(s, p, gpu, q->args.read_pointer_address, &rd, sizeof(rd)) ||
	    sim_memory_read(s, p, gpu, q->args.write_pointer_address, &wr, sizeof(wr)))
		return;
	for (int i = 0; i < BURST && rd < wr; i++) {
		if (step(s, p, q, &rd, wr))
			return;
		q->packets++;
	}
}
