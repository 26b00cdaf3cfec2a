/* SPDX-License-Identifier: MIT */
// A kernel for the scene of a grid whose workgroups meet by the device's global wave sync.
// 0x40: one wave of each workgroup waits for the grid, and the others wait for it at 0x50, as in the device library of
// ROCm; 0x80: a loop of eight bytes.
.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
	.text
	.globl reduce
	.p2align 8
	.type reduce, @function
reduce:
	.fill 16, 4, 0xbf800000 /* s_nop 0 */
	ds_gws_barrier v0 offset:0 gds
	s_waitcnt lgkmcnt(0)
	s_nop 0
	s_barrier
	.fill 11, 4, 0xbf800000
.Lloop:
	s_nop 0
	s_branch .Lloop
	.fill 30, 4, 0xbf800000
	s_endpgm
	.size reduce, . - reduce
	.rodata
	.p2align 6
	.amdhsa_kernel reduce
	.amdhsa_next_free_vgpr 8
	.amdhsa_next_free_sgpr 16
	.amdhsa_accum_offset 8
	.end_amdhsa_kernel
