/* SPDX-License-Identifier: MIT */
/* Exceptions of warps that have exited: the multiprocessor keeps them, no warp shows them. */
#include <errno.h>

#include "agentd/worker/cuda/cuda.h"

static bool has_exception(const struct cudbgshim_state *s, uint32_t sm)
{
	return s->exception_sms[sm / 64] >> sm % 64 & 1;
}

/* @return whether a warp shows the exception.  @param code  As for cuda_warp_shows(). */
static bool is_shown(const struct cuda_device *d, uint32_t sm, uint32_t code)
{
	struct cuda_warp w;

	for (uint64_t left = d->state->valid_warps[sm]; left; left &= left - 1) {
		cuda_warp_of(d, sm, (uint32_t)__builtin_ctzll(left), &w);
		if (cuda_warp_shows(&w, code))
			return true;
	}
	return false;
}

int cuda_exited_of(struct target_cuda *c, const struct cuda_device *d, uint32_t sm,
		   uint32_t *ret_code, uint64_t *ret_pc)
{
	bool has_pc = false;
	uint32_t code = 0;
	uint64_t pc = 0;
	int r;

	if (!has_exception(d->state, sm))
		return 0;
	r = cudbgshim_read_sm_exception(c->shim, d->d.gpu_id, sm, &code, &pc, &has_pc);
	if (r < 0)
		return is_shown(d, sm, 0) ? 0 : r;
	if (!code || is_shown(d, sm, code))
		return 0;
	*ret_code = code;
	*ret_pc = has_pc ? pc : 0;
	return 1;
}

static uint32_t count_sms(const struct target_cuda *c, uint64_t devices)
{
	uint32_t n = 0;

	for (size_t i = 0; i < c->n_devices; i++)
		for (uint32_t sm = 0; devices >> i & 1 && sm < c->devices[i].state->n_sms; sm++)
			n += has_exception(c->devices[i].state, sm);
	return n;
}

/* @return how many multiprocessors have an exception that cannot be read. */
static uint32_t add_device(struct target_cuda *c, const struct cuda_device *d, uint32_t *ret_first,
			   struct target_waves *ret)
{
	uint32_t unknown = 0, code;
	uint64_t pc;

	for (uint32_t sm = 0; sm < d->state->n_sms; sm++) {
		int r = cuda_exited_of(c, d, sm, &code, &pc);

		if (r < 0 && !unknown++)
			*ret_first = sm;
		if (r > 0)
			ret->exited[ret->n_exited++] =
				cuda_exception_exited(d->d.gpu_id, sm, code, pc);
	}
	return unknown;
}

const char *cuda_exited_add(struct target_cuda *c, uint64_t devices, struct rpc_arena *a,
			    struct target_waves *ret)
{
	uint32_t n = count_sms(c, devices), unknown = 0, first = 0;
	size_t dev = 0;

	ret->exited = n ? rpc_arena_array(a, n, sizeof(*ret->exited)) : NULL;
	for (size_t i = 0; ret->exited && i < c->n_devices; i++) {
		uint32_t at = 0, more = devices >> i & 1 ? add_device(c, &c->devices[i], &at, ret) : 0;

		if (more && !unknown) {
			first = at;
			dev = i;
		}
		unknown += more;
	}
	if (!unknown)
		return NULL;
	return rpc_arena_printf(a, "%u multiprocessor%s, %u of device %zu%s, ha%s an exception that no warp "
				"shows: the driver does not say which", unknown, unknown > 1 ? "s" : "",
				first, dev, unknown > 1 ? " the first" : "", unknown > 1 ? "ve" : "s");
}
