/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CUDA_EXCEPTION_H
#define WORKER_CUDA_EXCEPTION_H

/** @file exception.h  What a CUDBGException_t means, in a process and in a core. */

#include <stdint.h>

#include "agentd/worker/target/waves.h"
#include "rpc_gen.h"

struct cuda_exception {
	const char *text;	     /**< For wave.exception; static, one for each code. */
	uint32_t reason;	     /**< STOP_REASON_BIT() of the reason. */
	enum rpc_exception announced; /**< For exception.raised. */
};
/** @return what an exception means; NULL for the code of no exception. */
const struct cuda_exception *cuda_exception(uint32_t code);
/**
 * Describe an exception that only a multiprocessor knows, as snapshot/exited.h wants it.
 * @param code  Not 0.
 */
struct wave cuda_exception_exited(uint32_t dev, uint32_t sm, uint32_t code, uint64_t pc);

#endif /* WORKER_CUDA_EXCEPTION_H */
