/* SPDX-License-Identifier: MIT */
// Kernels of the controls, in the words of a generation of devices (GFX: 90a, 942, 1030, 1100, 1201 or 1250; llvm-mc 22).
// They are never executed: the object is one of gfx90a, since clang 14 has no newer ones than gfx1030.
#if GFX == 0x1201 || GFX == 0x1250
#define BARRIER 0xbf94ffff /* s_barrier_wait -1 */
#elif GFX == 0x1100
#define BARRIER 0xbfbd0000
#else
#define BARRIER 0xbf8a0000
#endif
#if GFX == 0x1100 || GFX == 0x1201 || GFX == 0x1250
#define SLEEP	0xbf830001
#define BRANCH	0xbfa00000
#else
#define SLEEP	0xbf8e0001
#define BRANCH	0xbf820000
#endif
// A load at v0 + s[2:3], a wait for it, a compare with s4, and a branch back (clang 22, -O2).
#if GFX == 0x90a
#define POLL 0xdc518000, 0x01020000, 0xbf8c0f70, 0x7d9a0204, 0xbf87fffb
#elif GFX == 0x942
#define POLL 0xde518000, 0x01020000, 0xbf8c0f70, 0x7d9a0204, 0xbf87fffb
#elif GFX == 0x1030
#define POLL 0xdc319000, 0x01020000, 0xbf8c3f70, 0x7d8a0204, 0xbf87fffb
#elif GFX == 0x1100
#define POLL 0xdc524000, 0x01020000, 0xbf8903f7, 0x7c9a0204, 0xbfa4fffb
#elif GFX == 0x1201 || GFX == 0x1250
#define POLL 0xee050002, 0x000c0001, 0x00000000, 0xbfc00000, 0x7c9a0204, 0xbfa4fffa
#endif

.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
#define WORD .long
#define NOPS(words) .fill words, 4, 0xbf800000 /* s_nop 0 */
// To a place some words before the instruction behind the branch.
#define BACK(words) WORD BRANCH + 0x10000 - (words)

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

// 256 bytes, with a barrier at 0x40.
begin gemm
NOPS(16)
WORD BARRIER
NOPS(47)
end gemm

// The same, and code that goes round from 0x80 on.
.macro late bytes
	begin late_\bytes
	NOPS(16)
	WORD BARRIER
	NOPS(15 + \bytes / 4 - 1)
	BACK(\bytes / 4)
	NOPS(32 - \bytes / 4)
	end late_\bytes
.endm
late 8
late 16
late 64
// Where the end of the kernel comes first.
begin late_128
NOPS(16)
WORD BARRIER
NOPS(47)
end late_128

// A persistent kernel that sleeps at 0x80, or does nothing, and looks again.
begin idle_asleep
NOPS(16)
WORD BARRIER
NOPS(15)
WORD SLEEP
NOPS(2)
BACK(4)
NOPS(28)
end idle_asleep
begin idle_awake
NOPS(16)
WORD BARRIER
NOPS(18)
BACK(4)
NOPS(28)
end idle_awake

// It sleeps at 0x80, once.
begin asleep
NOPS(16)
WORD BARRIER
NOPS(15)
WORD SLEEP
NOPS(31)
end asleep

// From 0x80 on: until the word at v0 + s[2:3] is what s4 says.
begin polling
NOPS(16)
WORD BARRIER
NOPS(15)
.long POLL
NOPS(16)
end polling

// A loop over 4 KiB.
begin tiles
NOPS(1088)
end tiles
