/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/inferior/victim_machine.h"

/* HWCAP_SVE of asm/hwcap.h. */
#define HAS_SVE (1UL << 22)
/* HWCAP2_SME; compilers for processors without it have no name for its register SVCR. */
#define HAS_SME (1UL << 23)
#define SVCR	"S3_3_C4_C2_2"

void trash_vectors(void)
{
	__asm__ volatile("movi v0.16b, #0xff\n movi v1.16b, #0xff\n movi v7.16b, #0xff\n movi v16.16b, #0xff\n"
			 "movi v31.16b, #0xff\n mov x16, #0x400000\n msr fpcr, x16\n msr fpsr, x16\n"
			 ::: "x16", "v0", "v1", "v7", "v16", "v31");
	if (getauxval(AT_HWCAP) & HAS_SVE)
		__asm__ volatile(".arch_extension sve\n ptrue p0.b\n pfalse p1.b\n pfalse p15.b\n"
				 "mov z0.d, p0/m, x16\n mov z31.d, p0/m, x16\n wrffr p1.b\n"
				 ::: "v0", "v31");
}

/* Rounding to nearest, no exception pending. */
bool has_clean_state(void)
{
	uint64_t control, status;

	__asm__ volatile("mrs %0, fpcr\n mrs %1, fpsr" : "=r"(control), "=r"(status));
	return !control && !status;
}

/* Rounding towards zero and the carry are held as well. */
static uint64_t check_narrow_registers(void)
{
	uint64_t bad;

	__asm__ volatile("mov x9, #0x7788\n movk x9, #0x5566, lsl #16\n movk x9, #0x3344, lsl #32\n"
			 "movk x9, #0x1122, lsl #48\n"
			 "dup v0.2d, x9\n mov v3.16b, v0.16b\n mov v9.16b, v0.16b\n mov v31.16b, v0.16b\n"
			 "mov x2, x9\n mov x18, x9\n mov x28, x9\n mov x7, x9\n"
			 "mov x3, #0xc00000\n msr fpcr, x3\n"
			 "mov x4, #20000\n cmp x4, #0\n" /* sets the carry */
			 "1: sub x4, x4, #1\n cbnz x4, 1b\n"
			 "cset %0, cc\n"
			 "mrs x4, fpcr\n eor x4, x4, x3\n orr %0, %0, x4\n msr fpcr, xzr\n"
			 "eor v3.16b, v3.16b, v0.16b\n eor v9.16b, v9.16b, v0.16b\n eor v31.16b, v31.16b, v0.16b\n"
			 "orr v3.16b, v3.16b, v9.16b\n orr v3.16b, v3.16b, v31.16b\n"
			 "mov x4, v3.d[0]\n orr %0, %0, x4\n mov x4, v3.d[1]\n orr %0, %0, x4\n"
			 "mov x4, v0.d[1]\n eor x4, x4, x9\n orr %0, %0, x4\n"
			 "eor x2, x2, x9\n orr %0, %0, x2\n eor x18, x18, x9\n orr %0, %0, x18\n"
			 "eor x28, x28, x9\n orr %0, %0, x28\n eor x7, x7, x9\n orr %0, %0, x7\n"
			 : "=&r"(bad)
			 :
			 : "x2", "x3", "x4", "x7", "x9", "x18", "x28", "v0", "v3", "v9", "v31", "cc", "memory");
	return bad;
}

/* All bits of SVE's registers, its predicates, and which of its loads have faulted (ffr). */
static uint64_t check_wide_registers(void)
{
	uint64_t bad;

	__asm__ volatile(".arch_extension sve\n"
			 "mov x9, #0x1234\n movk x9, #0x9abc, lsl #32\n"
			 "ptrue p0.b\n ptrue p5.s\n ptrue p15.h\n setffr\n wrffr p5.b\n"
			 "mov z8.d, x9\n mov z17.d, x9\n mov z31.d, x9\n"
			 "mov x4, #20000\n"
			 "1: sub x4, x4, #1\n cbnz x4, 1b\n"
			 "mov z1.d, x9\n eor z8.d, z8.d, z1.d\n eor z17.d, z17.d, z1.d\n eor z31.d, z31.d, z1.d\n"
			 "orr z8.d, z8.d, z17.d\n orr z8.d, z8.d, z31.d\n"
			 "orv d2, p0, z8.d\n fmov %0, d2\n"
			 "ptrue p1.s\n eors p2.b, p0/z, p1.b, p5.b\n cset x4, ne\n orr %0, %0, x4\n"
			 "rdffr p3.b\n eors p2.b, p0/z, p1.b, p3.b\n cset x4, ne\n orr %0, %0, x4\n"
			 "ptrue p1.h\n eors p2.b, p0/z, p1.b, p15.b\n cset x4, ne\n orr %0, %0, x4\n"
			 : "=&r"(bad)
			 :
			 : "x4", "x9", "v1", "v2", "v8", "v17", "v31", "cc", "memory");
	return bad;
}

uint64_t check_registers(void)
{
	return check_narrow_registers() | ((getauxval(AT_HWCAP) & HAS_SVE) ? check_wide_registers() : 0);
}

/* There is nothing below the stack pointer: what lies above it, to the last byte. */
__attribute__((noinline)) uint64_t check_stack(void)
{
	uint64_t bad;

	__asm__ volatile("sub sp, sp, #128\n mov x2, #16\n"
			 "1: sub x2, x2, #1\n str x2, [sp, x2, lsl #3]\n cbnz x2, 1b\n"
			 "mov x2, #20000\n"
			 "2: sub x2, x2, #1\n cbnz x2, 2b\n"
			 "mov %0, #0\n mov x2, #16\n"
			 "3: sub x2, x2, #1\n ldr x3, [sp, x2, lsl #3]\n eor x3, x3, x2\n orr %0, %0, x3\n cbnz x2, 3b\n"
			 "add sp, sp, #128\n"
			 : "=&r"(bad)
			 :
			 : "x2", "x3", "cc", "memory");
	return bad;
}

bool run_restartable(const volatile uint32_t *stop)
{
	(void)stop;
	return false;
}

/*
 * One piece of assembly: the compiler's own use of vectors would fault in streaming mode, and both ways into and out of
 * it set them to zero.
 */
static uint64_t hold_streaming(volatile uint32_t *ret_set, const volatile uint32_t *stop)
{
	uint64_t bad;

	__asm__ volatile(".arch_extension sve\n .arch_extension sme\n"
			 "smstart sm\n"
			 "mov x9, #0x1234\n movk x9, #0x9abc, lsl #32\n"
			 "mov z8.d, x9\n mov z31.d, x9\n ptrue p0.b\n ptrue p5.s\n"
			 "mov w4, #1\n stlr w4, [%[set]]\n"
			 "1: ldr w4, [%[stop]]\n cbz w4, 1b\n"
			 "mov z1.d, x9\n eor z8.d, z8.d, z1.d\n eor z31.d, z31.d, z1.d\n orr z8.d, z8.d, z31.d\n"
			 "orv d2, p0, z8.d\n fmov %[bad], d2\n"
			 "ptrue p1.s\n eors p2.b, p0/z, p1.b, p5.b\n cset x4, ne\n orr %[bad], %[bad], x4\n"
			 "mrs x4, " SVCR "\n eor x4, x4, #1\n orr %[bad], %[bad], x4\n"
			 "smstop sm\n"
			 : [bad] "=&r"(bad)
			 : [set] "r"(ret_set), [stop] "r"(stop)
			 : "x4", "x9", "cc", "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",
			   "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23",
			   "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31");
	return bad;
}

/* One row of the matrix, which has at most 256 bytes. */
static bool hold_stored(volatile uint32_t *ret_set, const volatile uint32_t *stop)
{
	const struct timespec t = { .tv_nsec = 1000000 };
	uint8_t row[256], seen[256];
	uint64_t size, mode;

	memset(row, 0x5a, sizeof(row));
	memset(seen, 0, sizeof(seen));
	__asm__ volatile(".arch_extension sme\n smstart za\n mov w12, #0\n ldr za[w12, 0], [%1]\n rdsvl %0, #1\n"
			 : "=&r"(size) : "r"(row) : "w12", "memory");
	*ret_set = 1;
	while (!*stop)
		syscall(SYS_nanosleep, &t, NULL);
	__asm__ volatile(".arch_extension sme\n mrs %0, " SVCR "\n mov w12, #0\n str za[w12, 0], [%1]\n smstop za\n"
			 : "=&r"(mode) : "r"(seen) : "w12", "memory");
	return mode != 2 || memcmp(row, seen, size);
}

int hold_matrices(enum matrices kind, volatile uint32_t *ret_set, const volatile uint32_t *stop)
{
	if (!(getauxval(AT_HWCAP2) & HAS_SME))
		return -1;
	return kind == MATRICES_STREAMING ? hold_streaming(ret_set, stop) != 0 : hold_stored(ret_set, stop);
}
