/* SPDX-License-Identifier: MIT */
/* Names of kernels and device functions of NCCL and RCCL, as their libraries have them. */
#include <errno.h>
#include <string.h>

#include "testlib.h"
#include "waits/collective/collective.h"

static bool is(const struct waits_word_of_name *w, const char *text)
{
	return text ? w->text && w->size == strlen(text) && !memcmp(w->text, text, w->size) : !w->text;
}

static void names_tell_their_parts(void)
{
	static const struct {
		const char *name;
		bool is_function;
		const char *operation, *algorithm, *protocol, *reduction, *type;
	} rows[] = {
		{ "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		  false, "AllReduce", "RING", "LL", "Sum", "f32" },
		{ "_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
		  false, "AllReduce", "RING", "LL", "Sum", "f32" },
		{ "ncclDevFunc_ReduceScatter_PreMulSum_bf16_NVLS_TREE_SIMPLE()",
		  true, "ReduceScatter", "NVLS_TREE", "SIMPLE", "PreMulSum", "bf16" },
		{ "ncclDevFunc_Reduce_MinMax_f8e4m3_RING_LL128", true, "Reduce", "RING", "LL128", "MinMax", "f8e4m3" },
		{ "ncclDevKernel_AllGather_COLLNET_DIRECT_SIMPLE",
		  false, "AllGather", "COLLNET_DIRECT", "SIMPLE", NULL, NULL },
		{ "ncclDevFunc_AllGatherV_RING_SIMPLE", true, "AllGatherV", "RING", "SIMPLE", NULL, NULL },
		{ "ncclDevKernel_SendRecv(ncclDevComm*, unsigned long, ncclWork*)",
		  false, "SendRecv", NULL, NULL, NULL, NULL },
		{ "ncclDevKernel_Generic", false, NULL, NULL, NULL, NULL, NULL },
		{ "ncclDevKernelDebug_Generic", false, NULL, NULL, NULL, NULL, NULL },
		{ "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
		  false, "SendRecv", "RING", "SIMPLE", "Sum", "int8_t" },
		{ "ncclFunction_AllReduce_RING_SIMPLE_Sum_f32", true, "AllReduce", "RING", "SIMPLE", "Sum", "f32" },
		{ "ncclFunction_AllGather_RING_SIMPLE_Sum_int8_t()",
		  true, "AllGather", "RING", "SIMPLE", "Sum", "int8_t" },
		{ "ncclSymDevKernel_AllReduce_AGxLL_R_sum_f32(ncclSymDevArgs)",
		  false, "AllReduce", NULL, NULL, NULL, NULL },
		{ "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC_sum_f8e5m2(ncclSymkDevWorkArgs4K)",
		  false, "AllReduce", NULL, NULL, NULL, NULL },
		{ "_Z32ncclSymkDevKernel_AllGather_LLMC22ncclSymkDevWorkArgs4K",
		  false, "AllGather", NULL, NULL, NULL, NULL },
		{ "ncclKernelLL128Debug_Broadcast_TREE_LL128_Sum_uint32_t",
		  false, "Broadcast", "TREE", "LL128", "Sum", "uint32_t" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct waits_collective c = { 0 };

		TEST_ROW_EQ(i, waits_collective_read(rows[i].name, &c), 0);
		TEST_ROW_EQ(i, c.is_function, rows[i].is_function);
		TEST_ROW_EQ(i, is(&c.operation, rows[i].operation), true);
		TEST_ROW_EQ(i, is(&c.algorithm, rows[i].algorithm), true);
		TEST_ROW_EQ(i, is(&c.protocol, rows[i].protocol), true);
		TEST_ROW_EQ(i, is(&c.reduction, rows[i].reduction), true);
		TEST_ROW_EQ(i, is(&c.type, rows[i].type), true);
	}
}

static void other_names_are_none(void)
{
	static const char *const names[] = {
		"", "_Z", "_Z4", "_Z99999999999999999999x", "gemm", "all_reduce", "ncclDevKernel_",
		"ncclDevKernel_AllReduceX", "ncclDevKernel_AllReduce_Sum_f32_RING",
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL_x", "ncclDevKernelGinResetSignalsAndCounters",
		"ncclSymkDevKernel_", "ncclSymkDevKernel_AllReduce", "ncclSymDevKernel_Copy_LL",
		"ncclFunction_AllReduce", "ncclFunction_Generic", "my_ncclDevKernel_SendRecv",
		"ncclKernel_AllReduce_RING_LL_Sum_", "_Z13ncclDevKernel_SendRecv",
	};
	struct waits_collective c;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		TEST_ROW_EQ(i, waits_collective_read(names[i], &c), -ENOENT);
}

TEST_SUITE(waits_collective, TEST(names_tell_their_parts), TEST(other_names_are_none));
