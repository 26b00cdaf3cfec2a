/* SPDX-License-Identifier: MIT */
/*
 * Threads that wait below frames which are hard to unwind, each in one way, which is the thread's name.  A line is
 * printed when all are at it.
 * usage: frames          ways that lead to the outermost frame
 *        frames ends     ways that must end before it
 */
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* An address that no mapping can have. */
#define NOWHERE	   UINT64_C(0x00f0000000000000)
#define STACK_SIZE 65536

/* Functions in assembly: what compilers make of C is theirs to choose. */
#define FUNCTION(name, body)                                                                              \
	__asm__(".text\n.p2align 4\n.globl " name "\n.type " name ", @function\n" name ":\n.cfi_startproc\n" \
		body "\n.cfi_endproc\n.size " name ", . - " name "\n")
#define ENTER                                                                                                \
	"push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\nmov %rsp, %rbp\n.cfi_def_cfa_register %rbp\n" \
	"sub $200, %rsp\nand $-64, %rsp\n"
#define LEAVE "leave\n.cfi_def_cfa %rsp, 8\nret\n"
#define PAUSE "mov $34, %eax\nsyscall\n"
/* A frame of another call, which nobody has made, below the real one: its caller would be that of `within`. */
#define DECOY "lea decoy_return(%rip), %rax\nmov %rax, 72(%rsp)\nmov (%rbp), %rax\nmov %rax, 64(%rsp)\n"

/* No frame at all. */
FUNCTION("leaf", PAUSE "ret\n");
/* %rbp is saved, and holds something else. */
FUNCTION("general", "push %rbp\n.cfi_def_cfa_offset 16\n.cfi_offset %rbp, -16\nmov $0x5a5a5a50, %ebp\ncall leaf\n"
		    "pop %rbp\n.cfi_def_cfa_offset 8\n.cfi_restore %rbp\nret\n");
/* %rbp is its caller's. */
FUNCTION("keeps", "sub $24, %rsp\n.cfi_def_cfa_offset 32\ncall general\nadd $24, %rsp\n.cfi_def_cfa_offset 8\nret\n");
/* A frame that only %rbp finds. */
FUNCTION("framed_general", ENTER "call keeps\n" LEAVE);
/* %rbx holds the frame, and %rbp something else. */
FUNCTION("moved", "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\nmov %rsp, %rbx\n.cfi_def_cfa_register %rbx\n"
		  "sub $80, %rsp\nand $-64, %rsp\ncall saves_rbx\nmov %rbx, %rsp\n.cfi_def_cfa_register %rsp\npop %rbx\n"
		  ".cfi_def_cfa_offset 8\nret\n");
FUNCTION("saves_rbx", "push %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\nmov $3, %ebx\ncall general\npop %rbx\n"
		      ".cfi_def_cfa_offset 8\nret\n");
FUNCTION("framed_moved", ENTER "call moved\n" LEAVE);
/* The innermost frame needs %rbp itself, and is found by the call in front of it. */
FUNCTION("itself", ENTER DECOY PAUSE LEAVE);
FUNCTION("framed_itself", ENTER "call itself\n" LEAVE);
FUNCTION("within", ENTER "call *%rax\ndecoy_return: nop\n" LEAVE);
/* The same through a pointer: two calls may have been made. */
FUNCTION("framed_either", ENTER "lea itself(%rip), %rax\ncall *%rax\n" LEAVE);
/* A signal is taken at a function's first instruction; in front of it is another one's code. */
FUNCTION("before", "sub $104, %rsp\n.cfi_def_cfa_offset 112\ncall abort\n");
__asm__(".globl first\n.type first, @function\nfirst:\n.cfi_startproc\nud2\nret\n.cfi_endproc\n.size first, . - first\n");
FUNCTION("framed_first", ENTER "call first\n" LEAVE);
/* The handler: it waits and saves nothing. */
FUNCTION("handler", PAUSE "ret\n");
/* Calls that fault on the way: in a procedure linkage table, and in the kernel's own library. */
FUNCTION("framed_linkage", ENTER "call getppid@PLT\n" LEAVE);
FUNCTION("framed_clock", ENTER "mov $1, %edi\nmov $1, %esi\ncall clock_gettime@PLT\n" LEAVE);

/* No further frame can be found. */
FUNCTION("lacks", "push %r12\n.cfi_def_cfa_offset 16\nmov %rsp, %r12\n.cfi_def_cfa_register %r12\n" PAUSE "pop %r12\nret\n");
FUNCTION("lost", "mov $4096, %esp\n" PAUSE "ud2\n");
FUNCTION("deep", "sub $8, %rsp\n.cfi_def_cfa_offset 16\nsub $1, %edi\njz 1f\ncall deep\n1:" PAUSE
		 "add $8, %rsp\n.cfi_def_cfa_offset 8\nret\n");

void framed_general(void), framed_moved(void), framed_itself(void), framed_either(void), framed_first(void),
	framed_linkage(void), framed_clock(void), lacks(void), lost(void), deep(int n), handler(int), leaf(void);

static void *alternate_stack;

static void wait_elsewhere(void)
{
	stack_t stack = { .ss_sp = alternate_stack, .ss_size = STACK_SIZE };

	sigaltstack(&stack, NULL);
	framed_first();
}

static void wait_without_table(void)
{
	char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*function)(void);

	/* mov $34, %eax; syscall; ret */
	memcpy(code, "\xb8\x22\0\0\0\x0f\x05\xc3", 8);
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	memcpy(&function, &code, sizeof(function));
	function();
}

static void wait_deep(void)
{
	deep(400);
}

/* ------------------------------------------------------------------ start -------------------- */

/* The call of getppid() in `framed_linkage` goes nowhere: its entry begins with a jump through a word of memory. */
static void break_linkage(void)
{
	const unsigned char *entry;
	int32_t distance;

	__asm__("lea getppid@PLT(%%rip), %0" : "=r"(entry));
	memcpy(&distance, entry + 2, sizeof(distance));
	*(uint64_t *)(entry + 6 + distance) = NOWHERE;
}

struct way {
	const char *name;
	void (*function)(void);
};

static const struct way ways[] = {
	{ "general", framed_general }, { "moved", framed_moved }, { "itself", framed_itself }, { "first", framed_first },
	{ "elsewhere", wait_elsewhere }, { "linkage", framed_linkage }, { "clock", framed_clock },
};
static const struct way ends[] = {
	{ "register", lacks }, { "ambiguous", framed_either }, { "table", wait_without_table }, { "memory", lost },
	{ "depth", wait_deep },
};

static void *run(void *arg)
{
	const struct way *way = arg;

	pthread_setname_np(pthread_self(), way->name);
	way->function();
	return NULL;
}

static int start(const struct way *list, size_t n)
{
	pthread_t thread;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = pthread_create(&thread, NULL, run, (void *)&list[i]);
	return r;
}

int main(int argc, char **argv)
{
	const struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };
	char stack[STACK_SIZE];

	/* Above all threads' own. */
	alternate_stack = stack;
	for (const int *s = (const int[]){ SIGILL, SIGSEGV, 0 }; *s; s++)
		sigaction(*s, &action, NULL);
	break_linkage();
	if (argc > 1 ? start(ends, sizeof(ends) / sizeof(ends[0])) : start(ways, sizeof(ways) / sizeof(ways[0])))
		return 1;
	sleep(1);
	if (write(1, "ready\n", 6) < 0)
		return argv[0] == NULL;
	leaf();
	return 0;
}
