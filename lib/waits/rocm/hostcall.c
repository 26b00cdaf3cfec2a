/* SPDX-License-Identifier: MIT */
#include "waits/rocm/hostcall.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/reader.h"

/* What is read for packets follows on the buffer, which has a few more members in some releases. */
#define GAP_MAX 4096u
/* With phases: the bits of the device, those of the host, and the headers lie behind each other. */
#define PHASE_BYTES  4u
#define HEADER_BYTES 16u
/* With stacks, members of which all releases have. */
#define STACKS_BYTES 48u

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

static bool follows(uint64_t at, uint64_t address)
{
	return !(at % 8) && at > address && at - address <= GAP_MAX;
}

static bool is_signal(uint64_t address)
{
	return address && !(address % 8);
}

/* The packets end where what they carry begins, and the mask is for as many of them or the next power of 2. */
static bool read_stacks(struct reader *r, uint64_t address, struct waits_hostcall *ret, uint64_t *ret_packets)
{
	uint64_t payloads, bytes, places;

	ret->at = reader_u64(r);
	payloads = reader_u64(r);
	ret->doorbell = reader_u64(r);
	ret->free = reader_u64(r);
	ret->ready = reader_u64(r);
	ret->mask = reader_u64(r);
	bytes = payloads - ret->at;
	places = ret->mask + 1;
	*ret_packets = bytes / WAITS_HOSTCALL_PACKET_BYTES;
	return ret->mask && ret->mask <= UINT32_MAX && !(places & ret->mask) && is_signal(ret->doorbell) &&
	       follows(ret->at, address) && ret->at - address >= STACKS_BYTES && payloads > ret->at &&
	       !(bytes % WAITS_HOSTCALL_PACKET_BYTES) && *ret_packets <= places && *ret_packets > places / 2;
}

/*
 * Each of four addresses says how many packets there are, and so does a number.  Where the mask of stacks is, which is
 * odd, lies the address of the signal, which is even: no buffer is of both layouts.
 */
static bool read_phases(struct reader *r, uint64_t address, struct waits_hostcall *ret, uint64_t *ret_packets)
{
	const uint64_t device = reader_u64(r), host = reader_u64(r), occupied = reader_u64(r);
	const uint64_t headers = reader_u64(r), payloads = reader_u64(r);

	ret->at = device;
	ret->doorbell = reader_u64(r);
	*ret_packets = reader_u32(r);
	return *ret_packets && is_signal(ret->doorbell) && occupied && !(occupied % PHASE_BYTES) &&
	       follows(device, address) && device - address >= WAITS_HOSTCALL_BYTES && payloads > device &&
	       host - device == *ret_packets * PHASE_BYTES && headers - host == *ret_packets * PHASE_BYTES &&
	       payloads - headers == *ret_packets * HEADER_BYTES;
}

static bool (*const readers[WAITS_HOSTCALL_LAYOUTS])(struct reader *, uint64_t, struct waits_hostcall *, uint64_t *) = {
	[WAITS_HOSTCALL_STACKS] = read_stacks,
	[WAITS_HOSTCALL_PHASES] = read_phases,
};

int waits_hostcall_read(const void *buffer, size_t size, uint64_t address, struct waits_hostcall *ret)
{
	for (int i = 0; i < WAITS_HOSTCALL_LAYOUTS && size >= WAITS_HOSTCALL_BYTES; i++) {
		uint64_t packets;
		struct reader r;

		reader_init(&r, buffer, size);
		*ret = (struct waits_hostcall){ .layout = (enum waits_hostcall_layout)i };
		if (!readers[i](&r, address, ret, &packets))
			continue;
		if (packets > WAITS_HOSTCALL_PACKETS_MAX)
			return -E2BIG;
		ret->packets = (uint32_t)packets;
		return 0;
	}
	return -EINVAL;
}

/* An answer takes the mark of one packet off, but a call has one bit here and another one there. */
size_t waits_hostcall_again(const struct waits_hostcall *b)
{
	return b->layout == WAITS_HOSTCALL_PHASES ? (size_t)2 * PHASE_BYTES * b->packets : 0;
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

static int count_stacks(const struct waits_hostcall *b, const void *packets, uint8_t *marks, struct waits_calls *ret)
{
	memset(marks, ON_NONE, b->packets);
	if (!mark_stack(b, packets, b->free, IS_FREE, marks, &ret->free) ||
	    !mark_stack(b, packets, b->ready, IS_READY, marks, &ret->ready))
		return -EBADMSG;
	for (uint32_t i = 0; i < b->packets; i++) {
		struct packet p;
		bool is_open;

		/* What a free one says is of its last call, or was never written. */
		if (marks[i] == IS_FREE)
			continue;
		p = packet_at(packets, i);
		is_open = p.control == 1;
		if (marks[i] == IS_READY && !is_open)
			return -EBADMSG;
		if (is_open)
			count(&p, ret);
		ret->taken += marks[i] == ON_NONE && is_open;
		ret->answered += !is_open;
	}
	return 0;
}

/* One of three arrays. */
static struct reader element(const struct waits_hostcall *b, const uint8_t *packets, size_t before, size_t size,
			     uint32_t i)
{
	struct reader r;

	reader_init(&r, packets + before * b->packets + size * i, size);
	return r;
}

static int count_phases(const struct waits_hostcall *b, const void *packets, struct waits_calls *ret)
{
	for (uint32_t i = 0; i < b->packets; i++) {
		struct reader device = element(b, packets, 0, PHASE_BYTES, i);
		struct reader host = element(b, packets, PHASE_BYTES, PHASE_BYTES, i);
		struct reader header = element(b, packets, (size_t)2 * PHASE_BYTES, HEADER_BYTES, i);
		const uint32_t asked = reader_u32(&device), answered = reader_u32(&host);
		struct packet p = { 0 };

		if (asked > 1 || answered > 1)
			return -EBADMSG;
		if (asked == answered) {
			ret->free++;
			continue;
		}
		p.lanes = reader_u64(&header);
		p.service = reader_u32(&header);
		count(&p, ret);
		ret->ready++;
	}
	return 0;
}

int waits_hostcall_calls(const struct waits_hostcall *b, const void *packets, size_t size, uint8_t *marks,
			 struct waits_calls *ret)
{
	*ret = (struct waits_calls){ 0 };
	if (size / WAITS_HOSTCALL_PACKET_BYTES < b->packets)
		return -EBADMSG;
	if (b->layout == WAITS_HOSTCALL_PHASES)
		return count_phases(b, packets, ret);
	return count_stacks(b, packets, marks, ret);
}
