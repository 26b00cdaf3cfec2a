/* SPDX-License-Identifier: MIT */
#include "waits/rocm/hostcall.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/reader.h"

/* The packets follow on the buffer, which has a few more members in some releases. */
#define GAP_MAX 4096u

enum mark { ON_NONE, IS_FREE, IS_READY };

struct packet {
	uint64_t next, lanes;
	uint32_t service, control;
};

const char *waits_service_name(enum waits_service s)
{
	static const char *const names[WAITS_SERVICE_COUNT] = {
		[WAITS_SERVICE_OTHER] = "an unknown service", [WAITS_SERVICE_FUNCTION] = "function",
		[WAITS_SERVICE_PRINTF] = "printf",	      [WAITS_SERVICE_MEMORY] = "memory",
		[WAITS_SERVICE_SANITIZER] = "sanitizer",
	};

	return s < WAITS_SERVICE_COUNT ? names[s] : names[WAITS_SERVICE_OTHER];
}

/* The packets end where what they carry begins, and the mask is for as many of them or the next power of 2. */
static bool fits(const struct waits_hostcall *b, uint64_t payloads, uint64_t address, uint64_t *ret_packets)
{
	const uint64_t bytes = payloads - b->headers, places = b->mask + 1;

	*ret_packets = bytes / WAITS_HOSTCALL_PACKET_BYTES;
	return b->mask && b->mask <= UINT32_MAX && !(places & b->mask) && payloads > b->headers &&
	       !(b->headers % 8) && b->doorbell && !(b->doorbell % 8) && b->headers > address &&
	       b->headers - address >= WAITS_HOSTCALL_BYTES && b->headers - address <= GAP_MAX &&
	       !(bytes % WAITS_HOSTCALL_PACKET_BYTES) && *ret_packets <= places && *ret_packets > places / 2;
}

int waits_hostcall_read(const void *buffer, size_t size, uint64_t address, struct waits_hostcall *ret)
{
	uint64_t payloads, packets;
	struct reader r;

	reader_init(&r, buffer, size);
	*ret = (struct waits_hostcall){ .headers = reader_u64(&r) };
	payloads = reader_u64(&r);
	ret->doorbell = reader_u64(&r);
	ret->free = reader_u64(&r);
	ret->ready = reader_u64(&r);
	ret->mask = reader_u64(&r);
	if (reader_is_bad(&r) || !fits(ret, payloads, address, &packets))
		return -EINVAL;
	if (packets > WAITS_HOSTCALL_PACKETS_MAX)
		return -E2BIG;
	ret->packets = (uint32_t)packets;
	return 0;
}

static struct packet packet_at(const void *packets, size_t i)
{
	struct packet p;
	struct reader r;

	reader_init(&r, (const uint8_t *)packets + i * WAITS_HOSTCALL_PACKET_BYTES, WAITS_HOSTCALL_PACKET_BYTES);
	p.next = reader_u64(&r);
	p.lanes = reader_u64(&r);
	p.service = reader_u32(&r);
	p.control = reader_u32(&r);
	return p;
}

/* No packet is on two stacks, or twice on one. */
static bool mark_stack(const struct waits_hostcall *b, const void *packets, uint64_t first, enum mark mark,
		       uint8_t *marks, uint32_t *ret_n)
{
	uint64_t at = first;

	for (*ret_n = 0; at; ++*ret_n) {
		const uint64_t i = at & b->mask;

		if (i >= b->packets || marks[i] != ON_NONE)
			return false;
		marks[i] = (uint8_t)mark;
		at = packet_at(packets, i).next;
	}
	return true;
}

static void count(const struct packet *p, struct waits_calls *to)
{
	const bool known = p->service < WAITS_SERVICE_COUNT;

	to->services[known ? p->service : WAITS_SERVICE_OTHER]++;
	to->lanes += (unsigned)__builtin_popcountll(p->lanes);
}

int waits_hostcall_calls(const struct waits_hostcall *b, const void *packets, size_t size, uint8_t *marks,
			 struct waits_calls *ret)
{
	*ret = (struct waits_calls){ 0 };
	if (size / WAITS_HOSTCALL_PACKET_BYTES < b->packets)
		return -EINVAL;
	memset(marks, ON_NONE, b->packets);
	if (!mark_stack(b, packets, b->free, IS_FREE, marks, &ret->free) ||
	    !mark_stack(b, packets, b->ready, IS_READY, marks, &ret->ready))
		return -EINVAL;
	for (uint32_t i = 0; i < b->packets; i++) {
		struct packet p;
		bool is_open;

		/* What a free one says is of its last call, or was never written. */
		if (marks[i] == IS_FREE)
			continue;
		p = packet_at(packets, i);
		is_open = p.control == 1;
		if (marks[i] == IS_READY && !is_open)
			return -EINVAL;
		if (is_open)
			count(&p, ret);
		ret->taken += marks[i] == ON_NONE && is_open;
		ret->answered += !is_open;
	}
	return 0;
}
