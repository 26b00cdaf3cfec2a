/* SPDX-License-Identifier: MIT */
/* Commands that suspend and resume queues. */
#include "internal.h"

#include <errno.h>
#include <string.h>

static int ids_check(const uint32_t *ids, size_t n_ids)
{
	if (n_ids > KFDTRAP_QUEUES_MAX || (!ids && n_ids))
		return -EINVAL;
	return 0;
}

/*
 * Copy queue ids for the kernel.  It ignores INVALID in an id but not ERROR, and does not report a
 * fault when it writes the verdicts back, so it gets a clean copy that is certainly writable.
 */
static void ids_load(uint32_t *copy, const uint32_t *ids, size_t n_ids)
{
	for (size_t i = 0; i < n_ids; i++)
		copy[i] = ids[i] & ~KFDTRAP_QUEUE_VERDICT_MASK;
}

static int ids_store(uint32_t *ids, const uint32_t *copy, size_t n_ids, int result, uint32_t *ret_n)
{
	if (result < 0)
		return result;
	if (n_ids)
		memcpy(ids, copy, n_ids * sizeof(*ids));
	if (ret_n)
		*ret_n = (uint32_t)result;
	return 0;
}

int kfdtrap_suspend_queues(struct kfdtrap *kt, uint64_t clear, uint32_t *ids, size_t n_ids,
			   uint32_t grace_kclk, uint32_t *ret_n)
{
	uint32_t copy[KFDTRAP_QUEUES_MAX];
	struct kfdabi_dbg_args args = { 0 };
	int r = ids_check(ids, n_ids);

	if (r < 0)
		return r;
	ids_load(copy, ids, n_ids);
	args.suspend.exception_mask = clear;
	args.suspend.queue_array_ptr = trap_ptr(copy);
	args.suspend.num_queues = (uint32_t)n_ids;
	args.suspend.grace_period = grace_kclk;
	r = trap_call(kt, KFDABI_DBG_SUSPEND_QUEUES, &args, trap_errnos_hardware);
	return ids_store(ids, copy, n_ids, r, ret_n);
}

int kfdtrap_resume_queues(struct kfdtrap *kt, uint32_t *ids, size_t n_ids, uint32_t *ret_n)
{
	uint32_t copy[KFDTRAP_QUEUES_MAX];
	struct kfdabi_dbg_args args = { 0 };
	int r = ids_check(ids, n_ids);

	if (r < 0)
		return r;
	ids_load(copy, ids, n_ids);
	/*
	 * To the kernel a null array means "all", whatever the count; an empty list must not mean
	 * that.
	 */
	args.resume.queue_array_ptr = ids ? trap_ptr(copy) : 0;
	args.resume.num_queues = (uint32_t)n_ids;
	r = trap_call(kt, KFDABI_DBG_RESUME_QUEUES, &args, trap_errnos_hardware);
	return ids_store(ids, copy, n_ids, r, ret_n);
}
