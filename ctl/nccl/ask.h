/* SPDX-License-Identifier: MIT */
#ifndef CTL_NCCL_ASK_H
#define CTL_NCCL_ASK_H

/**
 * @file ask.h
 * Asks the status socket of NCCL, from 2.24 on, for its report.  Any user of the machine may have that port: what
 * answers is bounded in time and size, and believed no further.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/out.h"
#include "ctl/nccl/place.h"

struct agent_err;

#define NCCL_ANSWER_MAX ((size_t)16 << 20) /**< Bytes of an answer. */
#define NCCL_ASK_MS	2000		   /**< Time that asking takes at most. */

/**
 * Ask for the report in JSON.
 * @param deadline_ns  When it has to be over.
 * @param ret          Begins empty; becomes the report.
 * @return 0, or negative with @p err.
 */
int nccl_ask(const struct nccl_place *p, uint64_t deadline_ns, struct out *ret, struct agent_err *err);

/** Whether an address, without a port, is one of the machine, in the network of a process; it is not connected to. */
bool nccl_is_here(const struct nccl_place *p, const char *host);

#endif /* CTL_NCCL_ASK_H */
