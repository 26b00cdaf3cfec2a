/* SPDX-License-Identifier: MIT */
/* Kernels and device functions with the names of NCCL's and with their arguments: they do not communicate. */
struct ncclKernelComm;

template <unsigned long N> struct alignas(16) ncclDevKernelArgsStorage {
	ncclKernelComm *comm;
	unsigned long long channelMask;
	unsigned char workStorageType;
	unsigned char rest[N - 17];
};

__shared__ volatile unsigned long long steps[2];

/* Each waits for a step of its own, so that none of them is folded into another. */
#define FUNCTION(name, n)                                       \
	__device__ __noinline__ void ncclDevFunc_##name()       \
	{                                                       \
		while (steps[0] < n)                            \
			;                                       \
		__syncthreads();                                \
	}
FUNCTION(AllReduce_Sum_f32_RING_SIMPLE, 1)
FUNCTION(AllReduce_Sum_f32_RING_LL, 2)
FUNCTION(AllReduce_Sum_f32_TREE_SIMPLE, 3)
FUNCTION(AllGather_RING_SIMPLE, 4)
FUNCTION(ReduceScatter_Sum_f32_RING_SIMPLE, 5)
FUNCTION(Broadcast_RING_SIMPLE, 6)
FUNCTION(SendRecv, 7)
FUNCTION(AllReduce_Sum_f32_RING_LL128, 8)
FUNCTION(AllGather_RING_LL, 9)
FUNCTION(AllGather_RING_LL128, 10)

/* As in NCCL, a kernel is named after one of the functions that it may execute. */
__global__ void ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096> const args)
{
	if (threadIdx.x == 0)
		steps[0] = args.channelMask;
	__syncthreads();
	switch (args.workStorageType) {
	case 0: ncclDevFunc_AllReduce_Sum_f32_RING_LL(); break;
	case 1: ncclDevFunc_AllReduce_Sum_f32_RING_SIMPLE(); break;
	case 2: ncclDevFunc_AllReduce_Sum_f32_TREE_SIMPLE(); break;
	case 3: ncclDevFunc_AllGather_RING_SIMPLE(); break;
	case 4: ncclDevFunc_ReduceScatter_Sum_f32_RING_SIMPLE(); break;
	case 5: ncclDevFunc_Broadcast_RING_SIMPLE(); break;
	case 6: ncclDevFunc_AllReduce_Sum_f32_RING_LL128(); break;
	case 7: ncclDevFunc_AllGather_RING_LL(); break;
	case 8: ncclDevFunc_AllGather_RING_LL128(); break;
	default: ncclDevFunc_SendRecv();
	}
}
