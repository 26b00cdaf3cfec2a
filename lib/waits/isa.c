/* SPDX-License-Identifier: MIT */
#include "waits/isa.h"

#include <errno.h>

#include "base/reader.h"

#define BIT(f)	 (UINT32_C(1) << (f))
#define BEFORE11 (BIT(WAITS_GFX9) | BIT(WAITS_GFX10))
#define FROM11	 (BIT(WAITS_GFX11) | BIT(WAITS_GFX12) | BIT(WAITS_GFX12_5))
#define FROM12	 (BIT(WAITS_GFX12) | BIT(WAITS_GFX12_5))

/*
 * Words by the families that have them, as llvm-mc of LLVM 22 encodes the instructions for gfx900, 90a, 942, 950,
 * 1010, 1030, 1100, 1150, 1200 and 1250.  tests/peers compares them with the LLVM of the machine.
 */
static const struct {
	uint32_t mask, word;
	uint32_t families;
	enum waits_op op;
	const char *name; /* NULL: that of the operation. */
} rows[] = {
	{ 0xffff0000, 0xbf8a0000, BEFORE11, WAITS_OP_BARRIER },
	{ 0xffff0000, 0xbfbd0000, BIT(WAITS_GFX11), WAITS_OP_BARRIER },
	/* The opcode's last bit stands for _isfirst; the barrier is the source operand. */
	{ 0xfffffe00, 0xbe804e00, FROM12, WAITS_OP_BARRIER_SIGNAL },
	{ 0xffff0000, 0xbf940000, FROM12, WAITS_OP_BARRIER_WAIT },
	{ 0xffff0000, 0xbf8e0000, BEFORE11, WAITS_OP_SLEEP },
	{ 0xffff0000, 0xbf830000, FROM11, WAITS_OP_SLEEP },
	{ 0xffffff00, 0xbe805800, FROM12, WAITS_OP_SLEEP, "s_sleep_var" },
	{ 0xffff0000, 0xbf840000, BIT(WAITS_GFX12_5), WAITS_OP_SLEEP, "s_monitor_sleep" },
	{ 0xffff0000, 0xbf8c0000, BEFORE11, WAITS_OP_WAIT_MEMORY },
	{ 0xffff0000, 0xbf890000, BIT(WAITS_GFX11) | BIT(WAITS_GFX12), WAITS_OP_WAIT_MEMORY },
	{ 0xffff0000, 0xbbfd0000, BIT(WAITS_GFX10), WAITS_OP_WAIT_MEMORY, "s_waitcnt_vscnt" }, /* null */
	{ 0xffff0000, 0xbc7c0000, BIT(WAITS_GFX11), WAITS_OP_WAIT_MEMORY, "s_waitcnt_vscnt" },
	{ 0xffff0000, 0xbfc00000, FROM12, WAITS_OP_WAIT_MEMORY, "s_wait_loadcnt" },
	{ 0xffff0000, 0xbfc10000, FROM12, WAITS_OP_WAIT_MEMORY, "s_wait_storecnt" },
	{ 0xffff0000, 0xbfc20000, BIT(WAITS_GFX12), WAITS_OP_WAIT_MEMORY, "s_wait_samplecnt" },
	{ 0xffff0000, 0xbfc30000, BIT(WAITS_GFX12), WAITS_OP_WAIT_MEMORY, "s_wait_bvhcnt" },
	{ 0xffff0000, 0xbfc60000, FROM12, WAITS_OP_WAIT_MEMORY, "s_wait_dscnt" },
	{ 0xffff0000, 0xbfc70000, FROM12, WAITS_OP_WAIT_MEMORY, "s_wait_kmcnt" },
	{ 0xffff0000, 0xbfc80000, FROM12, WAITS_OP_WAIT_MEMORY, "s_wait_loadcnt_dscnt" },
	{ 0xffff0000, 0xbfc90000, FROM12, WAITS_OP_WAIT_MEMORY, "s_wait_storecnt_dscnt" },
	{ 0xffff0000, 0xbfca0000, BIT(WAITS_GFX12_5), WAITS_OP_WAIT_MEMORY, "s_wait_asynccnt" },
	{ 0xffff0000, 0xbfcb0000, BIT(WAITS_GFX12_5), WAITS_OP_WAIT_MEMORY, "s_wait_tensorcnt" },
	{ 0xffff0000, 0xd93b0000, BIT(WAITS_GFX9), WAITS_OP_GWS_BARRIER },
	{ 0xffff0000, 0xd8760000, BIT(WAITS_GFX10) | BIT(WAITS_GFX11), WAITS_OP_GWS_BARRIER },
	{ 0xffff0000, 0xbf8d0000, BEFORE11, WAITS_OP_HALT },
	{ 0xffff0000, 0xbf820000, FROM11, WAITS_OP_HALT },
	{ 0xffff0000, 0xbf920000, BEFORE11, WAITS_OP_TRAP },
	{ 0xffff0000, 0xbf900000, FROM11, WAITS_OP_TRAP },
	{ 0xffff0000, 0xbf810000, BEFORE11, WAITS_OP_END },
	{ 0xffff0000, 0xbf9b0000, BEFORE11, WAITS_OP_END, "s_endpgm_saved" },
	{ 0xffff0000, 0xbfb00000, FROM11, WAITS_OP_END },
	{ 0xffff0000, 0xbfb10000, FROM11, WAITS_OP_END, "s_endpgm_saved" },
	{ 0xffffff00, 0xbe801d00, BIT(WAITS_GFX9), WAITS_OP_JUMP },
	{ 0xffffff00, 0xbe802000, BIT(WAITS_GFX10), WAITS_OP_JUMP },
	{ 0xffffff00, 0xbe804800, FROM11, WAITS_OP_JUMP },
	{ 0xffff0000, 0xbf820000, BEFORE11, WAITS_OP_BRANCH },
	{ 0xffff0000, 0xbf840000, BEFORE11, WAITS_OP_BRANCH_SCC0 },
	{ 0xffff0000, 0xbf850000, BEFORE11, WAITS_OP_BRANCH_SCC1 },
	{ 0xffff0000, 0xbf860000, BEFORE11, WAITS_OP_BRANCH_VCCZ },
	{ 0xffff0000, 0xbf870000, BEFORE11, WAITS_OP_BRANCH_VCCNZ },
	{ 0xffff0000, 0xbf880000, BEFORE11, WAITS_OP_BRANCH_EXECZ },
	{ 0xffff0000, 0xbf890000, BEFORE11, WAITS_OP_BRANCH_EXECNZ },
	{ 0xffff0000, 0xbfa00000, FROM11, WAITS_OP_BRANCH },
	{ 0xffff0000, 0xbfa10000, FROM11, WAITS_OP_BRANCH_SCC0 },
	{ 0xffff0000, 0xbfa20000, FROM11, WAITS_OP_BRANCH_SCC1 },
	{ 0xffff0000, 0xbfa30000, FROM11, WAITS_OP_BRANCH_VCCZ },
	{ 0xffff0000, 0xbfa40000, FROM11, WAITS_OP_BRANCH_VCCNZ },
	{ 0xffff0000, 0xbfa50000, FROM11, WAITS_OP_BRANCH_EXECZ },
	{ 0xffff0000, 0xbfa60000, FROM11, WAITS_OP_BRANCH_EXECNZ },
};

enum waits_family waits_family_of(uint32_t v)
{
	static const struct {
		uint32_t first, last;
		enum waits_family family;
	} targets[] = {
		{ 90000, 90000, WAITS_GFX9 },	 { 90002, 90002, WAITS_GFX9 },	  { 90004, 90004, WAITS_GFX9 },
		{ 90006, 90006, WAITS_GFX9 },	 { 90008, 90010, WAITS_GFX9 },	  { 90012, 90012, WAITS_GFX9 },
		{ 90400, 90402, WAITS_GFX9 },	 { 90500, 90500, WAITS_GFX9 },	  { 100100, 100103, WAITS_GFX10 },
		{ 100300, 100306, WAITS_GFX10 }, { 110000, 110003, WAITS_GFX11 }, { 110500, 110503, WAITS_GFX11 },
		{ 120000, 120001, WAITS_GFX12 }, { 120500, 120501, WAITS_GFX12_5 },
	};

	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++)
		if (v >= targets[i].first && v <= targets[i].last)
			return targets[i].family;
	return WAITS_FAMILY_COUNT;
}

int waits_instruction_read(enum waits_family f, const void *bytes, size_t size, struct waits_instruction *ret)
{
	struct reader r;
	uint32_t word;

	if (f >= WAITS_FAMILY_COUNT)
		return -ENOTSUP;
	if (size < 4)
		return -EINVAL;
	reader_init(&r, bytes, 4);
	word = reader_u32(&r);
	*ret = (struct waits_instruction){ .immediate = (int16_t)(word & 0xffff) };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if ((word & rows[i].mask) == rows[i].word && rows[i].families & BIT(f)) {
			ret->op = rows[i].op;
			ret->name = rows[i].name ? rows[i].name : waits_op_name(rows[i].op);
			break;
		}
	return 0;
}

const char *waits_op_name(enum waits_op op)
{
	static const char *const names[WAITS_OP_COUNT] = {
		[WAITS_OP_BARRIER] = "s_barrier",
		[WAITS_OP_BARRIER_SIGNAL] = "s_barrier_signal",
		[WAITS_OP_BARRIER_WAIT] = "s_barrier_wait",
		[WAITS_OP_SLEEP] = "s_sleep",
		[WAITS_OP_WAIT_MEMORY] = "s_waitcnt",
		[WAITS_OP_GWS_BARRIER] = "ds_gws_barrier",
		[WAITS_OP_HALT] = "s_sethalt",
		[WAITS_OP_TRAP] = "s_trap",
		[WAITS_OP_END] = "s_endpgm",
		[WAITS_OP_JUMP] = "s_setpc_b64",
		[WAITS_OP_BRANCH] = "s_branch",
		[WAITS_OP_BRANCH_SCC0] = "s_cbranch_scc0",
		[WAITS_OP_BRANCH_SCC1] = "s_cbranch_scc1",
		[WAITS_OP_BRANCH_VCCZ] = "s_cbranch_vccz",
		[WAITS_OP_BRANCH_VCCNZ] = "s_cbranch_vccnz",
		[WAITS_OP_BRANCH_EXECZ] = "s_cbranch_execz",
		[WAITS_OP_BRANCH_EXECNZ] = "s_cbranch_execnz",
	};

	return op < WAITS_OP_COUNT ? names[op] : NULL;
}
