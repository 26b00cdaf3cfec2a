/* SPDX-License-Identifier: MIT */
#include "agentd/worker/guard.h"

#include "agentd/ipc.h"
#include "base/fd.h"

/* A full socket means that spawn is not reading: then its deadline stands, which is right. */
static void tell(const struct guard *g, uint32_t type, uint32_t ms)
{
	const struct ipc_guard m = { .type = type, .ms = ms };

	fd_send(g->fd, &m, sizeof(m), NULL, 0);
}

void guard_arm(const struct guard *g, uint32_t ms)
{
	tell(g, IPC_ARM, ms);
}

void guard_disarm(const struct guard *g)
{
	tell(g, IPC_DISARM, 0);
}
