/* SPDX-License-Identifier: MIT */
#include "ctl/nccl/awaited.h"

#include <ctype.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"
#include "ctl/document/vendor_words.h"

/* Verbs that look at more than one process. */
#define HOW " (job and merge compare ranks)"

/* What one rank knows of others is no more than that they have sent nothing. */
static const char *others(struct rpc_arena *arena, const struct rpc_collective *k)
{
	auto_out struct out text = { 0 };

	out_str(&text, k->n_waits_for == 1 ? "rank " : "ranks ");
	for (size_t i = 0; i < k->n_waits_for; i++)
		out_fmt(&text, "%s%u", i ? ", " : "", k->waits_for[i]);
	return out_error(&text) ? NULL : rpc_arena_strdup(arena, text.data);
}

/* A word of a name as people write it: "COLLNET_DIRECT" is "collnet direct", and LL is a name. */
static void put_word(struct out *o, const char *word)
{
	for (const char *p = word; *p; p++)
		out_char(o, *p == '_' ? ' ' : str_starts_with(word, "LL") ? *p : (char)tolower((unsigned char)*p));
}

/* "AllReduce (ring, LL, f32 sum)", with as much of it as is known. */
static const char *operation_text(struct rpc_arena *arena, const struct rpc_collective *k)
{
	const char *const words[] = { k->algorithm, k->protocol, k->type, k->reduction };
	auto_out struct out text = { 0 };
	size_t n = 0;

	if (!k->operation)
		return "a collective operation";
	out_str(&text, k->operation);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!words[i])
			continue;
		out_str(&text, !n++ ? " (" : words[i] == k->reduction && k->type ? " " : ", ");
		if (words[i] == k->type)
			out_str(&text, k->type);
		else
			put_word(&text, words[i]);
	}
	out_str(&text, n ? ")" : "");
	return out_error(&text) ? k->operation : rpc_arena_strdup(arena, text.data);
}

/* Has something come between two samples, so that it waits for what is next? */
static bool has_moved(const struct rpc_why_get_result *r, const struct rpc_collective *k)
{
	bool any = false;

	for (size_t i = 0; i < r->n_waits; i++) {
		const struct rpc_wait *w = &r->waits[i];

		if (w->kind != RPC_WAIT_KIND_COLLECTIVE || w->gpu_id != k->gpu_id || w->queue_id != k->queue_id ||
		    (w->has_dispatch && w->dispatch != k->dispatch))
			continue;
		if (!w->has_stuck || w->stuck)
			return false;
		any = true;
	}
	return any;
}

const char *awaited_rank_text(struct rpc_arena *arena, const struct rpc_why_get_result *r,
			      const struct rpc_collective *k)
{
	const char *number = k->has_number ? rpc_arena_printf(arena, "operation 0x%" PRIx64, k->number) :
					     "operations that are not told apart";
	const char *awaited = k->n_waits_for ? others(arena, k) : NULL;
	const char *operation = operation_text(arena, k);
	const char *waits = has_moved(r, k) ? ", has moved and waits for " : ", waits for ";

	return rpc_arena_printf(arena, "%u of a communicator of %u: in %s, %s (%u %s of %s %u)%s%s%s", k->rank,
				k->ranks, operation ? operation : "", number ? number : "",
				k->waves, vendor_word(r->vendor, k->waves == 1 ? "wave" : "waves"),
				vendor_word(r->vendor, "queue"), k->queue_id, awaited ? waits : "", awaited ? awaited : "",
				awaited ? " (not seen)" : "");
}

/* One process may have several ranks of a communicator, as those of ncclCommInitAll(). */
static bool is_here(const struct rpc_why_get_result *r, const struct rpc_collective *k)
{
	for (size_t i = 0; i < r->n_collectives; i++)
		for (size_t n = 0; n < k->n_waits_for; n++)
			if (r->collectives[i].ranks == k->ranks && r->collectives[i].rank == k->waits_for[n])
				return true;
	return false;
}

const char *awaited_text(struct rpc_arena *arena, const struct rpc_why_get_result *r)
{
	const struct rpc_collective *first = NULL;
	const char *awaited;
	size_t n = 0;

	for (size_t i = r->n_collectives; i > 0; i--)
		if (r->collectives[i - 1].n_waits_for) {
			first = &r->collectives[i - 1];
			n++;
		}
	if (n > 1)
		return rpc_arena_printf(arena, "%zu collective operations wait for other ranks" HOW, n);
	awaited = first ? others(arena, first) : NULL;
	if (!awaited)
		return NULL;
	return rpc_arena_printf(arena, "rank %u %swaits for %s%s" HOW, first->rank,
				has_moved(r, first) ? "has moved and " : "", awaited,
				is_here(r, first)	? "" :
				first->n_waits_for == 1 ? ", which was not looked at" :
							  ", which were not looked at");
}
