/* SPDX-License-Identifier: MIT */
/* Memory of a process with the arguments of a wait for events, a ring of packets, and signals; and an environment. */
#include <errno.h>
#include <string.h>

#include "agentd/worker/host/event_wait.h"
#include "agentd/worker/process/rank.h"
#include "fuzzlib.h"

struct image {
	const uint8_t *data;
	size_t size;
};

/* The bytes again and again, so that each address leads somewhere; of each page that begins so, nowhere. */
static int read_image(void *ctx, const struct hoststack_piece *pieces, size_t n)
{
	const struct image *image = ctx;

	for (size_t k = 0; k < n; k++) {
		if (pieces[k].address >> 60 == 0xf)
			return -EFAULT;
		for (size_t i = 0; i < pieces[k].size; i++)
			((uint8_t *)pieces[k].buf)[i] = image->data[(pieces[k].address + i) % image->size];
	}
	return 0;
}

static void read_waits(struct hoststack_memory *m, const uint64_t *words)
{
	const struct event_queue q = { .ring = words[0], .ring_bytes = words[1] & 0xfffff, .read_index = words[2],
				       .write_index = words[3] };
	struct event_packets packets = { 0 };
	struct event_wait w = { 0 };
	const struct event_packet *found;

	if (event_wait_read(m, words[0], &w) == 0 && (w.n > EVENT_WAIT_MAX || w.n > w.asked || !w.asked))
		__builtin_trap();
	event_packets_read(m, &q, &packets);
	found = event_packets_find(&packets, &w);
	if (packets.n > EVENT_PACKETS_MAX || (found && !found->event))
		__builtin_trap();
	event_packets_deinit(&packets);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct image image = { data, size };
	struct hoststack_memory m = { .read = read_image, .ctx = &image, .bytes_left = 1 << 20 };
	struct rank rank;
	uint64_t words[4];

	rank_parse((const char *)data, size, &rank);
	if (strlen(rank.job) >= sizeof(rank.job) || (rank.has_local && !rank.from))
		__builtin_trap();
	if (size < sizeof(words))
		return 0;
	memcpy(words, data, sizeof(words));
	read_waits(&m, words);
	return 0;
}
