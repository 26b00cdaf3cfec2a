/* SPDX-License-Identifier: MIT */
#include "disasm/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/cleanup.h"
#include "base/elf_view.h"

#define FDS_MAX 4u

static void reset_signals(void)
{
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	signal(SIGINT, SIG_IGN); /* of the terminal: the parent decides */
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int disasm_settle(const int *fds, size_t n, unsigned int cpu_s, pid_t parent)
{
	const struct rlimit no_core = { 0, 0 }, cpu = { cpu_s, cpu_s };
	int aside[FDS_MAX];

	reset_signals();
	/* Each may lie where another one goes. */
	for (size_t i = 0; i < n; i++) {
		aside[i] = fcntl(fds[i], F_DUPFD, (int)n);
		if (aside[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < n; i++)
		if (dup2(aside[i], (int)i) < 0)
			return -errno;
	close_range((unsigned int)n, ~0U, 0);
	setrlimit(RLIMIT_CORE, &no_core);
	setrlimit(RLIMIT_CPU, &cpu);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return getppid() == parent ? 0 : -ESRCH;
}

#define WORD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, action)
#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), ANSWER(SECCOMP_RET_ALLOW)

/* If none, or one, of these bits is set in that argument, whose lower half comes first in memory. */
#define ALLOW_WITHOUT(name, argument, bits)                                                        \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 4), WORD(args[argument]),              \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0), ANSWER(SECCOMP_RET_ALLOW),       \
		ANSWER(SECCOMP_RET_ERRNO | EPERM)
#define ALLOW_WITH(name, argument, bits)                                                           \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 4), WORD(args[argument]),              \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1), ANSWER(SECCOMP_RET_ALLOW),       \
		ANSWER(SECCOMP_RET_ERRNO | EPERM)
/* Descriptors alone: F_SETOWN and F_SETSIG send signals to anybody, F_SETLK and F_SETLEASE stop others. */
#define ALLOW_FCNTL                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_fcntl, 0, 5), WORD(args[1]),                      \
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, F_GETFL, 0, 1),                                \
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, F_DUPFD_CLOEXEC, 0, 1),                        \
		ANSWER(SECCOMP_RET_ALLOW), ANSWER(SECCOMP_RET_ERRNO | EPERM)
_Static_assert(F_DUPFD < F_GETFL && F_GETFD < F_GETFL && F_SETFD < F_GETFL && F_SETFL > F_GETFL,
	       "commands up to F_GETFL change descriptors of the caller alone");
/* Numbers mean calls of one processor only, which install() puts in. */
#define MACHINE_AT 1
#define BEGIN                                                                                      \
	WORD(arch), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),                                  \
		ANSWER(SECCOMP_RET_KILL_PROCESS), WORD(nr)
#define END ANSWER(SECCOMP_RET_ERRNO | EPERM)

static const struct sock_filter filter[] = {
	BEGIN,
	ALLOW(recvfrom), ALLOW(sendto), ALLOW(read), ALLOW(write), ALLOW(brk), ALLOW(mmap),
	ALLOW(munmap), ALLOW(mremap), ALLOW(madvise), ALLOW(mprotect), ALLOW(futex),
	ALLOW(getpid), ALLOW(gettid), ALLOW(tgkill), ALLOW(rt_sigprocmask), ALLOW(rt_sigreturn),
	ALLOW(exit), ALLOW(exit_group),
	END,
};

/* Of the loader, the C library, and a shell, for those who wrap the program in a script. */
static const struct sock_filter program_filter[] = {
	BEGIN,
	ALLOW(read), ALLOW(readv), ALLOW(pread64), ALLOW(write), ALLOW(writev), ALLOW(lseek),
	ALLOW(close), ALLOW(dup), ALLOW(dup3), ALLOW_FCNTL, ALLOW(fstat), ALLOW(newfstatat),
	ALLOW(statx), ALLOW(faccessat), ALLOW(faccessat2), ALLOW(readlinkat), ALLOW(getcwd),
	ALLOW(brk), ALLOW(mmap), ALLOW(munmap), ALLOW(mremap), ALLOW(madvise), ALLOW(mprotect),
	ALLOW(futex), ALLOW(set_tid_address), ALLOW(set_robust_list), ALLOW(rseq),
	ALLOW(getrandom), ALLOW(uname), ALLOW(sysinfo), ALLOW(getpid), ALLOW(getppid),
	ALLOW(gettid), ALLOW(getpgid), ALLOW(getuid), ALLOW(geteuid), ALLOW(getgid), ALLOW(getegid),
	ALLOW(clock_gettime), ALLOW(clock_nanosleep), ALLOW(gettimeofday), ALLOW(sched_yield),
	ALLOW(sched_getaffinity), ALLOW(sched_get_priority_max), ALLOW(sched_get_priority_min),
	ALLOW(rt_sigaction), ALLOW(rt_sigprocmask), ALLOW(rt_sigreturn), ALLOW(sigaltstack),
	ALLOW(execve), ALLOW(exit), ALLOW(exit_group),
#ifdef __NR_arch_prctl
	ALLOW(arch_prctl),
#endif
	/* Newer processors lack these. */
#ifdef __NR_open
	ALLOW(access), ALLOW(getpgrp), ALLOW(dup2), ALLOW(readlink), ALLOW(stat), ALLOW(lstat),
	ALLOW_WITHOUT(open, 1, O_ACCMODE | O_CREAT | O_TRUNC),
#endif
	ALLOW_WITHOUT(openat, 2, O_ACCMODE | O_CREAT | O_TRUNC),
	ALLOW_WITH(clone, 0, CLONE_THREAD),
	/* Its flags cannot be seen; the C library takes clone instead. */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone3, 0, 1), ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
	END,
};

#define FILTER_MAX 192
_Static_assert(ARRAY_SIZE(filter) <= FILTER_MAX && ARRAY_SIZE(program_filter) <= FILTER_MAX, "room for each");

static int install(const struct sock_filter *f, size_t n)
{
	struct sock_filter own[FILTER_MAX];
	const struct sock_fprog program = { .len = (unsigned short)n, .filter = own };

	memcpy(own, f, n * sizeof(*f));
	/* As linux/audit.h composes its constants. */
	own[MACHINE_AT].k = __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE | elf_own_machine();
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return -errno;
	return 0;
}

int disasm_confine(void)
{
	return install(filter, ARRAY_SIZE(filter));
}

int disasm_confine_program(void)
{
	return install(program_filter, ARRAY_SIZE(program_filter));
}
