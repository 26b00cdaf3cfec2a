/* SPDX-License-Identifier: MIT */
/*
 * Reading memory in few calls.  Each is answered while the device stands still.  What a communicator has is small and
 * much of it lies together, so that pages are read, and kept for the look: nothing of the device changes meanwhile.
 * What others write into it is as old as the first read of its page, and none is before the device stood still.
 */
#include "agentd/worker/nccl/reading.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/reader.h"

/* ------------------------------------------------------------------ calls -------------------- */

bool nccl_is_over(const struct nccl_reading *r)
{
	return r->from->deadline_ns && clock_now_ns() >= r->from->deadline_ns;
}

static bool may_read(struct nccl_reading *r)
{
	if (r->reads == NCCL_READS_MAX || nccl_is_over(r)) {
		r->cut = true;
		return false;
	}
	r->reads++;
	return true;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

/* Where an address is does not say itself, but what lies near it is mostly in the same. */
static enum nccl_memory guess(const struct nccl_reading *r, uint64_t address)
{
	if (!r->has_last[NCCL_HOST])
		return NCCL_DEVICE;
	return r->has_last[NCCL_DEVICE] &&
			       distance(address, r->last[NCCL_DEVICE]) <= distance(address, r->last[NCCL_HOST]) ?
		       NCCL_DEVICE :
		       NCCL_HOST;
}

/* Counts of what comes from another host, or by way of this one, are in memory of the host. */
bool nccl_read_once(struct nccl_reading *r, uint64_t address, void *buf, uint32_t size)
{
	enum nccl_memory of = guess(r, address);

	if (address > UINT64_MAX - size)
		return false;
	for (unsigned int i = 0; i < NCCL_MEMORIES; i++) {
		if (!may_read(r))
			return false;
		if (r->from->memory(r->from->ctx, r->wave, of, address, buf, size)) {
			r->last[of] = address;
			return r->has_last[of] = true;
		}
		of = of == NCCL_DEVICE ? NCCL_HOST : NCCL_DEVICE;
	}
	return false;
}

bool nccl_read_shared(struct nccl_reading *r, const struct wave *w, uint32_t address, void *buf, uint32_t size)
{
	return r->from->shared && may_read(r) && r->from->shared(r->from->ctx, w, address, buf, size);
}

/* ------------------------------------------------------------------ pages -------------------- */

void nccl_read_by(struct nccl_reading *r, const struct wave *w)
{
	if (r->wave && r->wave->gpu_id != w->gpu_id) {
		r->pages.n = r->pages.next = 0;
		r->pages.is_off = false;
		memset(r->has_last, 0, sizeof(r->has_last));
	}
	r->wave = w;
}

void nccl_reading_deinit(struct nccl_reading *r)
{
	for (uint32_t i = 0; i < NCCL_PAGES; i++) {
		free(r->pages.bytes[i]);
		r->pages.bytes[i] = NULL;
	}
}

static const uint8_t *page_at(struct nccl_reading *r, uint64_t address)
{
	struct nccl_pages *p = &r->pages;
	uint8_t *to;

	for (uint32_t i = 0; i < p->n; i++)
		if (p->at[i] == address)
			return p->bytes[i];
	if (p->is_off)
		return NULL;
	if (!p->bytes[p->next])
		p->bytes[p->next] = malloc(NCCL_PAGE);
	to = p->bytes[p->next];
	if (!to)
		return NULL;
	/* Until it is read, there is nothing in its place. */
	p->at[p->next] = UINT64_MAX;
	if (!nccl_read_once(r, address, to, NCCL_PAGE))
		return NULL;
	p->at[p->next] = address;
	p->next = (p->next + 1) % NCCL_PAGES;
	p->n += p->n < NCCL_PAGES;
	return to;
}

/* @return whether all of it is on pages that were read. */
static bool read_pages(struct nccl_reading *r, uint64_t address, uint8_t *buf, uint32_t size)
{
	while (size) {
		const uint32_t in_page = (uint32_t)(address % NCCL_PAGE);
		const uint32_t n = size < NCCL_PAGE - in_page ? size : NCCL_PAGE - in_page;
		const uint8_t *page = page_at(r, address - in_page);

		if (!page)
			return false;
		memcpy(buf, page + in_page, n);
		address += n;
		buf += n;
		size -= n;
	}
	return true;
}

bool nccl_read_bytes(struct nccl_reading *r, uint64_t address, void *buf, uint32_t size)
{
	if (read_pages(r, address, buf, size))
		return true;
	if (r->cut || !nccl_read_once(r, address, buf, size))
		return false;
	/* Cores have parts of memory only, and so have simulated devices. */
	r->pages.is_off = true;
	return true;
}

bool nccl_read_u64(struct nccl_reading *r, uint64_t address, uint64_t *ret)
{
	uint8_t bytes[8];
	struct reader at;

	if (!nccl_read_bytes(r, address, bytes, sizeof(bytes)))
		return false;
	reader_init(&at, bytes, sizeof(bytes));
	*ret = reader_u64(&at);
	return true;
}

bool nccl_read_u32(struct nccl_reading *r, uint64_t address, uint32_t *ret)
{
	uint8_t bytes[4];
	struct reader at;

	if (!nccl_read_bytes(r, address, bytes, sizeof(bytes)))
		return false;
	reader_init(&at, bytes, sizeof(bytes));
	*ret = reader_u32(&at);
	return true;
}
