/* SPDX-License-Identifier: MIT */
/* A report of NCCL's status socket, which any user may have written.  The same bytes as what /proc has of a process. */
#include <stdlib.h>
#include <string.h>

#include "base/out.h"
#include "ctl/nccl/place.h"
#include "ctl/nccl/report.h"
#include "fuzzlib.h"

static bool is_here(void *data, const char *host)
{
	(void)data;
	return !strncmp(host, "127.", 4);
}

static void check(const struct rpc_nccl_told *told)
{
	if (told->n_communicators > told->communicators_count || told->n_communicators > NCCL_COMMUNICATORS_MAX ||
	    told->confidence == RPC_CONFIDENCE_PROVEN)
		abort();
	for (size_t i = 0; i < told->n_communicators; i++) {
		const struct rpc_nccl_communicator *c = &told->communicators[i];
		auto_out struct out text = { 0 };

		if (!c->n_own || c->n_odd > c->odd_count || c->n_odd > NCCL_ODD_MAX)
			abort();
		for (size_t k = 0; k < c->n_own; k++)
			if (c->own[k] >= c->ranks || (k && c->own[k - 1] > c->own[k]))
				abort();
		for (size_t k = 0; k < c->n_odd; k++)
			if (c->odd[k].rank >= c->ranks)
				abort();
		nccl_report_put(&text, c);
		if (!text.size)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rpc_collective collectives[] = { { .rank = 2, .ranks = 4 }, { .rank = 0, .ranks = 8 } };
	const struct nccl_who who = { .pid = 42, .is_here = is_here };
	const char *text = (const char *)data, *value;
	auto_rpc_arena struct rpc_arena arena;
	struct agent_err err = { 0 };
	struct rpc_nccl_told told;
	struct nccl_address address;
	uint32_t pid = 0;
	size_t n = 0;

	rpc_arena_init(&arena, 0);
	if (nccl_address_parse(text, size, &address) == 0 && (!address.n || address.n > 2))
		abort();
	if (nccl_status_pid(text, size, &pid) == 0 && !pid)
		abort();
	value = nccl_environ_find(text, size, "NCCL_RAS_ADDR", &n);
	if (value && (value <= text || n > size || value + n > text + size))
		abort();
	if (nccl_report_read(text, size, &who, &arena, &told, &err) < 0) {
		if (!err.code || !err.message[0])
			abort();
		return 0;
	}
	if (nccl_report_join(&told, collectives, 2) > 2)
		abort();
	check(&told);
	return 0;
}
