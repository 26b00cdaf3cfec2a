/* SPDX-License-Identifier: MIT */
/* Warps of NVIDIA's devices that poll a word of memory; what they poll was read while they stood still. */
#include "agentd/worker/wait/polls.h"

/* @return the part of the warp that is in the loop, or the whole one. */
static const struct wave *part_of(const struct wave *w, const struct target_spin *s)
{
	for (uint32_t i = 0; i < wave_n_parts(w); i++)
		if (w->parts->list[i].pc == s->pc)
			return &w->parts->list[i];
	return w;
}

static void look_at_spin(struct look *l, const struct target_spin *s)
{
	const struct wave *whole = &l->seen->waves.waves[s->wave], *w = part_of(whole, s);
	const struct poll_loop loop = { .begin = s->begin, .load = s->load, .end = s->end, .is_lock = s->is_lock,
					.sleeps = s->sleeps, .here = s->warps, .read = "read in the same stop", .more = "" };
	const struct polled p = { .word = { .address = s->address, .bytes = s->bytes, .op = (enum waits_compare)s->op,
					    .is_signed = s->is_signed, .with = s->with, .mask = s->mask },
				  .value = s->value, .is_known = s->has_value, .is_shared = s->is_shared,
				  .lanes = (uint32_t)__builtin_popcount(s->lanes) };

	if (w->state != RPC_WAVE_STATE_RUNNING)
		return;
	if (!s->is_read) {
		look_undecoded(l, "the word that they poll, or what it is compared with, is not known", s->warps);
		return;
	}
	/* A loop that ends in this round. */
	if (p.is_known && waits_word_holds(&p.word, p.value))
		return;
	if (!look_add_blocks(l, s, w, &p.word))
		polls_add(l, w, whole, &loop, &p);
}

void look_at_spins(struct look *l)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_spins; i++)
		look_at_spin(l, &t->spins[i]);
}
