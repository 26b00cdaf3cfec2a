/* SPDX-License-Identifier: MIT */
#ifndef INFERIOR_VICTIM_MACHINE_H
#define INFERIOR_VICTIM_MACHINE_H

/** @file victim_machine.h  What the victim knows of its processor: victim_x86_64.c, victim_aarch64.c. */

#include <stdbool.h>
#include <stdint.h>

/**
 * Execute a restartable sequence (rseq(2)) until @p *stop is set; whenever the kernel aborts it, it begins anew.
 * @return false where the C library has registered none, or this processor's is not written.
 */
bool run_restartable(const volatile uint32_t *stop);
/** Registers that no call could put back (SME of aarch64). */
enum matrices { MATRICES_STREAMING, /**< A mode in which vectors have another length; a system call ends it. */
		MATRICES_STORED };  /**< The matrix itself (ZA), also in system calls. */
/**
 * Set these registers, then @p *ret_set, and hold them until @p *stop is set.
 * @return 0, 1 when they have changed, -1 where the processor or its kernel has none.
 */
int hold_matrices(enum matrices kind, volatile uint32_t *ret_set, const volatile uint32_t *stop);
/** Leave registers that a function may change in disorder. */
void trash_vectors(void);
/** Does floating point work as at the start of a function? */
bool has_clean_state(void);
/** Hold known values in all vector registers and many others for a while.  @return 0; else something changed. */
uint64_t check_registers(void);
/** The same with what is on the stack, and with what a leaf function may have below it.  @return 0, else changed. */
uint64_t check_stack(void);

#endif /* INFERIOR_VICTIM_MACHINE_H */
