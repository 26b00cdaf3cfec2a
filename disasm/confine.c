/* SPDX-License-Identifier: MIT */
#include "disasm/confine.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "base/cleanup.h"

#if defined(__x86_64__)
#define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define MACHINE AUDIT_ARCH_AARCH64
#endif

#ifdef MACHINE
#define WORD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ANSWER(action) BPF_STMT(BPF_RET | BPF_K, action)
#define ALLOW(name)                                                                                \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_##name, 0, 1), ANSWER(SECCOMP_RET_ALLOW)

static struct sock_filter filter[] = {
	WORD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0),
	ANSWER(SECCOMP_RET_KILL_PROCESS),
	WORD(nr),
	ALLOW(recvfrom), ALLOW(sendto), ALLOW(read), ALLOW(write), ALLOW(brk), ALLOW(mmap),
	ALLOW(munmap), ALLOW(mremap), ALLOW(madvise), ALLOW(mprotect), ALLOW(futex),
	ALLOW(getpid), ALLOW(gettid), ALLOW(tgkill), ALLOW(rt_sigprocmask), ALLOW(rt_sigreturn),
	ALLOW(exit), ALLOW(exit_group),
	ANSWER(SECCOMP_RET_ERRNO | EPERM),
};

int disasm_confine(void)
{
	const struct sock_fprog program = { .len = ARRAY_SIZE(filter), .filter = filter };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return -errno;
	return 0;
}
#else
int disasm_confine(void)
{
	return 0;
}
#endif
