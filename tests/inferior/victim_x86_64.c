/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <sys/rseq.h>
#include <time.h>

#include "tests/inferior/victim_machine.h"

void trash_vectors(void)
{
	if (__builtin_cpu_supports("avx"))
		__asm__ volatile("vpcmpeqd %%xmm0, %%xmm0, %%xmm0\n vmovaps %%ymm0, %%ymm1\n"
				 "vmovaps %%ymm0, %%ymm7\n vmovaps %%ymm0, %%ymm8\n vmovaps %%ymm0, %%ymm15\n"
				 ::: "xmm0", "xmm1", "xmm7", "xmm8", "xmm15");
	__asm__ volatile("fninit\n fldpi\n fldpi\n" ::: "st", "st(1)");
}

bool has_clean_state(void)
{
	volatile long double x = 3.0L; /* needs a clean x87 stack */

	x = x * x + 1.0L;
	return x == 10.0L;
}

static uint64_t check_wide_registers(void)
{
	uint64_t bad;

	__asm__ volatile("mov $0x1122334455667788, %%rbx\n"
			 "vmovq %%rbx, %%xmm0\n vpbroadcastq %%xmm0, %%ymm0\n"
			 "vmovdqa %%ymm0, %%ymm3\n vmovdqa %%ymm0, %%ymm9\n vmovdqa %%ymm0, %%ymm15\n"
			 "mov %%rbx, %%r12\n mov %%rbx, %%r15\n mov %%rbx, %%r8\n std\n"
			 "mov $20000, %%ecx\n"
			 "1: dec %%ecx\n jnz 1b\n"
			 "pushfq\n pop %%rdx\n cld\n and $0x400, %%edx\n xor $0x400, %%edx\n"
			 "mov %%rdx, %0\n"
			 "vpxor %%ymm0, %%ymm3, %%ymm3\n vpxor %%ymm0, %%ymm9, %%ymm9\n"
			 "vpxor %%ymm0, %%ymm15, %%ymm15\n vpor %%ymm3, %%ymm9, %%ymm9\n"
			 "vpor %%ymm9, %%ymm15, %%ymm15\n vextracti128 $1, %%ymm15, %%xmm3\n"
			 "vpor %%xmm3, %%xmm15, %%xmm3\n vmovq %%xmm3, %%rdx\n or %%rdx, %0\n"
			 "vmovq %%xmm0, %%rdx\n xor %%rbx, %%rdx\n or %%rdx, %0\n"
			 "xor %%rbx, %%r12\n or %%r12, %0\n xor %%rbx, %%r15\n or %%r15, %0\n"
			 "xor %%rbx, %%r8\n or %%r8, %0\n"
			 : "=&r"(bad)
			 :
			 : "rbx", "rcx", "rdx", "r8", "r12", "r15", "xmm0", "xmm3", "xmm9", "xmm15", "cc",
			   "memory");
	return bad;
}

uint64_t check_registers(void)
{
	if (__builtin_cpu_supports("avx2"))
		return check_wide_registers();
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
	return 0;
}

/* 128 bytes below the stack pointer belong to a leaf function. */
__attribute__((naked)) uint64_t check_stack(void)
{
	__asm__("mov $16, %ecx\n"
		"1: mov %rcx, %rdx\n neg %rdx\n mov %rcx, (%rsp,%rdx,8)\n dec %ecx\n jnz 1b\n"
		"mov $20000, %ecx\n"
		"2: dec %ecx\n jnz 2b\n"
		"xor %eax, %eax\n mov $16, %ecx\n"
		"3: mov %rcx, %rdx\n neg %rdx\n mov (%rsp,%rdx,8), %rdx\n xor %rcx, %rdx\n or %rdx, %rax\n"
		"dec %ecx\n jnz 3b\n"
		"ret\n");
}

/*
 * The kernel aborts the sequence whenever the thread was preempted in it, and takes the pointer to it away; so what
 * follows an abort sets that again.  The word before the abort handler has the signature that the C library has given.
 */
__attribute__((noinline)) bool run_restartable(const volatile uint32_t *stop)
{
	struct rseq *rseq = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);

	if (!__rseq_size)
		return false;
	__asm__ volatile(".pushsection .data.rel.local, \"aw\"\n .balign 32\n"
			 "10: .long 0, 0\n .quad 1f, 2f - 1f, 3f\n .popsection\n"
			 "4: lea 10b(%%rip), %%rax\n mov %%rax, (%[cs])\n"
			 "1: cmpl $0, (%[stop])\n je 1b\n"
			 "2: jmp 5f\n"
			 ".long %c[signature]\n"
			 "3: jmp 4b\n"
			 "5: movq $0, (%[cs])\n"
			 :
			 : [cs] "r"(&rseq->rseq_cs), [stop] "r"(stop), [signature] "i"(RSEQ_SIG)
			 : "rax", "cc", "memory");
	return true;
}

int hold_matrices(enum matrices kind, volatile uint32_t *ret_set, const volatile uint32_t *stop)
{
	(void)kind;
	(void)ret_set;
	(void)stop;
	return -1;
}
