/* SPDX-License-Identifier: MIT */
// Kernels with the barriers of gfx12.5, in its words (LLVM 22).
// They are never executed: the object is one of gfx90a, since clang 14 knows no gfx1250.
.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
#define WORD .long
#define NOPS(words) .fill words, 4, 0xbf800000 /* s_nop 0 */
// s_branch to a place some words before the instruction behind it.
#define BACK(words) WORD 0xbfa00000 + 0x10000 - (words)

.macro begin name
	.text
	.globl \name
	.p2align 8
	.type \name, @function
\name:
.endm

.macro end name
	.size \name, . - \name
	.rodata
	.p2align 6
	.amdhsa_kernel \name
	.amdhsa_next_free_vgpr 8
	.amdhsa_next_free_sgpr 16
	.amdhsa_accum_offset 8
	.end_amdhsa_kernel
.endm

// Waves join a named barrier, come to it, and wait at 0x48.
begin stages
WORD 0xbe80517d /* s_barrier_init m0 */
WORD 0xbe805281 /* s_barrier_join 1 */
NOPS(15)
WORD 0xbe804e7d /* s_barrier_signal m0 */
WORD 0xbf940001 /* s_barrier_wait 1 */
NOPS(13)
// A loop of 16 bytes at 0x80, and one of 64 bytes at 0x100.
NOPS(3)
BACK(4)
NOPS(28)
NOPS(15)
BACK(16)
NOPS(16)
end stages

// Workgroups of a cluster exchange what is at their edges: they wait at 0x48.
begin halo
NOPS(17)
WORD 0xbe804ec3 /* s_barrier_signal -3 */
WORD 0xbf94fffd /* s_barrier_wait -3 */
NOPS(13)
// Likewise.
NOPS(3)
BACK(4)
NOPS(28)
NOPS(15)
BACK(16)
NOPS(16)
end halo
