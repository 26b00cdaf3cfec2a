/* SPDX-License-Identifier: MIT */
/* Warps of NVIDIA's devices that poll memory; what they poll was read while they stood still. */
#include "agentd/worker/wait/polls.h"

/* @return the part of the warp that is in the loop, or the whole one. */
static const struct wave *part_of(const struct wave *w, const struct target_spin *s)
{
	for (uint32_t i = 0; i < wave_n_parts(w); i++)
		if (w->parts->list[i].pc == s->pc)
			return &w->parts->list[i];
	return w;
}

_Static_assert(TARGET_SPIN_WORDS == POLLED_MAX, "all words of a loop are told");

static struct polled polled_of(const struct target_word *w)
{
	return (struct polled){ .word = { .address = w->address, .bytes = w->bytes, .op = (enum waits_compare)w->op,
					  .is_signed = w->is_signed, .with = w->with, .mask = w->mask },
				.value = w->value, .is_known = w->has_value, .is_shared = w->is_shared,
				.load = w->load };
}

static void look_at_spin(struct look *l, const struct target_spin *s)
{
	const struct wave *whole = &l->seen->waves.waves[s->wave], *w = part_of(whole, s);
	const struct poll_loop loop = { .begin = s->begin, .end = s->end, .is_lock = s->is_lock,
					.sleeps = s->sleeps, .here = s->warps, .read = "read in the same stop", .more = "" };
	struct polled_any p = { .n = s->n_words, .lanes = (uint32_t)__builtin_popcount(s->lanes) };

	if (w->state != RPC_WAVE_STATE_RUNNING)
		return;
	if (!s->is_read) {
		look_undecoded(l, "the word that they poll, or what it is compared with, is not known", s->warps);
		return;
	}
	for (uint8_t i = 0; i < s->n_words; i++)
		p.list[i] = polled_of(&s->words[i]);
	if (polls_end(&p))
		return;
	for (uint8_t i = 0; i < s->n_words; i++)
		if (!s->words[i].has_value)
			look_missing(l, "words that are polled: memory does not give all of their values");
	if (!look_add_blocks(l, s, w, &p.list[0].word))
		polls_add(l, w, whole, &loop, &p);
}

void look_at_spins(struct look *l)
{
	const struct target_waves *t = &l->seen->waves;

	for (size_t i = 0; i < t->n_spins; i++)
		look_at_spin(l, &t->spins[i]);
}
