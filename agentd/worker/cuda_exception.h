/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CUDA_EXCEPTION_H
#define WORKER_CUDA_EXCEPTION_H

/** @file cuda_exception.h  What a CUDBGException_t means, in a process and in a core. */

#include <stdint.h>

#include "rpc_gen.h"

struct cuda_exception {
	const char *text;	     /**< For wave.exception; static, one for each code. */
	uint32_t reason;	     /**< STOP_REASON_BIT() */
	enum rpc_exception announced; /**< For exception.raised. */
};
/** @return NULL for no exception. */
const struct cuda_exception *cuda_exception(uint32_t code);

#endif /* WORKER_CUDA_EXCEPTION_H */
