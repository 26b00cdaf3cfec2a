/* SPDX-License-Identifier: MIT */
#include "hoststack/memory.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

int hoststack_read_pieces(struct hoststack_memory *m, const struct hoststack_piece *pieces, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		if (pieces[i].size > UINT64_MAX - pieces[i].address)
			return -EFAULT;
		sum += pieces[i].size;
	}
	if (sum > m->bytes_left)
		return -EDQUOT;
	if (m->deadline_ns && clock_now_ns() >= m->deadline_ns)
		return -ETIME;
	m->bytes_left -= sum;
	return m->read(m->ctx, pieces, n);
}

int hoststack_read(struct hoststack_memory *m, uint64_t address, void *buf, size_t size)
{
	const struct hoststack_piece p = { address, buf, size };

	return hoststack_read_pieces(m, &p, 1);
}

int hoststack_read_u64(struct hoststack_memory *m, uint64_t address, uint64_t *ret)
{
	return hoststack_read(m, address, ret, sizeof(*ret));
}

int hoststack_is_over(int r)
{
	return r == -ESRCH || r == -EDQUOT || r == -ETIME || r == -ENOMEM;
}

uint64_t hoststack_number(const uint8_t *bytes, size_t offset, size_t width)
{
	uint64_t v = 0;

	memcpy(&v, bytes + offset, width);
	return v;
}

int hoststack_circle_closes(struct hoststack_circle *c, uint64_t address)
{
	if (c->mark == address)
		return 1;
	if (c->steps++ == c->power) {
		c->mark = address;
		c->power = 2 * c->power + 1;
		c->steps = 0;
	}
	return 0;
}
