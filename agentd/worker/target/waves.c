/* SPDX-License-Identifier: MIT */
#include "agentd/worker/target/waves.h"

#include <errno.h>

int wave_name_check(const struct rpc_wave_name *n, const char *param, struct agent_err *err)
{
	if (n->has_index || wave_name_lasts(n))
		return 0;
	return agent_err_set(err, RPC_ERROR_INVALID_PARAMS, EINVAL, NULL, NULL,
			     "%s: needs index, or dispatch, workgroup and wave_in_group", param);
}

bool wave_is_named(const struct wave *w, const struct rpc_wave_name *n)
{
	if (w->queue_id != n->queue_id)
		return false;
	if (!wave_name_lasts(n) && (w->unit != n->unit || w->index != n->index))
		return false;
	if (n->has_dispatch && (!w->has_dispatch || w->dispatch != n->dispatch))
		return false;
	if (n->n_workgroup && !w->has_workgroup)
		return false;
	for (size_t i = 0; i < n->n_workgroup; i++)
		if (w->workgroup[i] != n->workgroup[i])
			return false;
	return !n->has_wave_in_group ||
	       (w->has_wave_in_group && w->wave_in_group == n->wave_in_group);
}

/* Are both waves of one kind?  Names of exceptions are the same string if they are equal. */
static bool is_like(const struct wave *a, const struct wave *b)
{
	return a->pc == b->pc && a->gpu_id == b->gpu_id && a->state == b->state &&
	       a->reasons == b->reasons && a->exception == b->exception;
}

size_t waves_choose_representatives(struct wave *waves, size_t n,
				    struct wave *ret[WAVES_REPRESENTATIVES_MAX])
{
	size_t chosen = 0;

	for (int faults = 1; faults >= 0; faults--)
		for (size_t i = 0; i < n && chosen < WAVES_REPRESENTATIVES_MAX; i++) {
			size_t k = 0;

			if ((waves[i].reasons != 0) != faults)
				continue;
			while (k < chosen && !is_like(ret[k], &waves[i]))
				k++;
			if (k == chosen)
				ret[chosen++] = &waves[i];
		}
	return chosen;
}
