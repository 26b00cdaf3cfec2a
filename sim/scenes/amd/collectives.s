# SPDX-License-Identifier: MIT
# A kernel and device functions with the names that RCCL of ROCm 5.4 gives them, for the scenes: each polls for ever.
.amdgcn_target "amdgcn-amd-amdhsa--gfx90a"
.text

.macro function name
.globl \name
.p2align 8
.type \name,@function
\name:
.Lloop\@:
 s_sleep 1
 s_nop 0
 s_branch .Lloop\@
 s_endpgm
.size \name, . - \name
.endm

function _Z42ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_tP11ncclDevCommmP8ncclWork
function _Z44ncclFunction_AllReduce_RING_SIMPLE_Sum_floatv
function _Z44ncclFunction_SendRecv_RING_SIMPLE_Sum_int8_tv
function _Z45ncclFunction_AllGather_RING_SIMPLE_Sum_int8_tv

.rodata
.p2align 6
.amdhsa_kernel _Z42ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_tP11ncclDevCommmP8ncclWork
 .amdhsa_kernarg_size 24
 .amdhsa_next_free_vgpr 8
 .amdhsa_next_free_sgpr 16
 .amdhsa_accum_offset 8
.end_amdhsa_kernel
