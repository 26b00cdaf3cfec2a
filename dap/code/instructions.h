/* SPDX-License-Identifier: MIT */
#ifndef DAP_CODE_INSTRUCTIONS_H
#define DAP_CODE_INSTRUCTIONS_H

/**
 * @file instructions.h
 * What texts of code are made with.
 */

#include "dap/adapter.h"

/** Open the disassembler for a processor, unless it is open.  @return 0, negative with @p err. */
int dap_disasm_for(struct dap *d, const char *cpu, struct agent_err *err);
/** Tell once what there is to say of the disassembler; some of that is known only after the first instructions. */
void dap_disasm_note(struct dap *d);
/**
 * Ask the agent for functions and lines.
 * @param n  At most 4096.
 * @return as many places, in the arena; NULL when it cannot tell.
 */
const struct rpc_code_place *dap_locate(struct dap *d, struct rpc_arena *a, uint64_t *addresses, size_t n);

#endif /* DAP_CODE_INSTRUCTIONS_H */
