/* SPDX-License-Identifier: MIT */
#include "agentd/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "agentd/landlock.h"
#include "base/cleanup.h"

/* PTRACE_GET_RSEQ_CONFIGURATION of linux/ptrace.h, which conflicts with sys/ptrace.h. */
#define GET_RSEQ_CONFIGURATION 0x420f
/* What becomes of a call that is not on the list. */
#define REFUSE SCMP_ACT_ERRNO(EPERM)
/* The type of a socket without its flags (SOCK_TYPE_MASK of the kernel's linux/net.h). */
#define SOCKET_TYPE 0xf

/* Every filter has these. */
static const int common_calls[] = {
	SCMP_SYS(brk), SCMP_SYS(clock_gettime), SCMP_SYS(clock_nanosleep),
	SCMP_SYS(close), SCMP_SYS(dup), SCMP_SYS(epoll_create1), SCMP_SYS(epoll_ctl),
	SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_wait), SCMP_SYS(eventfd2), SCMP_SYS(exit),
	SCMP_SYS(exit_group), SCMP_SYS(fcntl), SCMP_SYS(fstat), SCMP_SYS(ftruncate),
	SCMP_SYS(futex), SCMP_SYS(getpid), SCMP_SYS(getrandom), SCMP_SYS(getsockopt),
	SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(getgid), SCMP_SYS(geteuid), SCMP_SYS(getegid),
	SCMP_SYS(lseek), SCMP_SYS(madvise), SCMP_SYS(memfd_create), SCMP_SYS(mmap),
	SCMP_SYS(mremap), SCMP_SYS(munmap), SCMP_SYS(nanosleep), SCMP_SYS(newfstatat),
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(prctl), SCMP_SYS(pread64), SCMP_SYS(prlimit64),
	SCMP_SYS(read), SCMP_SYS(readv), SCMP_SYS(recvfrom), SCMP_SYS(recvmsg),
	SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(setsockopt),
	SCMP_SYS(shutdown), SCMP_SYS(timerfd_create),
	SCMP_SYS(timerfd_settime), SCMP_SYS(uname), SCMP_SYS(write), SCMP_SYS(writev),
};

/* A thread needs these besides clone, which allow_threads() and allow_child() restrict. */
static const int thread_calls[] = {
	SCMP_SYS(mprotect), SCMP_SYS(rseq), SCMP_SYS(sched_getaffinity), SCMP_SYS(set_robust_list),
};

/* A worker that only reads /proc, sysfs and the version of the device needs these. */
static const int look_calls[] = {
	SCMP_SYS(access), SCMP_SYS(getcwd), SCMP_SYS(getdents64),
	SCMP_SYS(ioctl), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(stat), SCMP_SYS(lstat),
	SCMP_SYS(statx),
};

/* A worker with a target needs these, too; allow_ptrace() adds the requests of ptrace. */
static const int session_calls[] = {
	SCMP_SYS(pidfd_send_signal), SCMP_SYS(process_vm_readv),
	SCMP_SYS(setitimer), SCMP_SYS(signalfd4), SCMP_SYS(wait4), SCMP_SYS(waitid),
};

static const int core_calls[] = {
	SCMP_SYS(getdents64), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(setitimer),
	SCMP_SYS(stat), SCMP_SYS(lstat), SCMP_SYS(statx),
};

/*
 * The adapter's calls, and those of its child, the disassembler, until that one confines itself;
 * the loader and LLVM run in the child, too.
 */
static const int adapter_calls[] = {
	SCMP_SYS(access),   SCMP_SYS(close_range), SCMP_SYS(dup2),      SCMP_SYS(getcwd),
	SCMP_SYS(getppid),  SCMP_SYS(getrlimit),   SCMP_SYS(kill),      SCMP_SYS(lstat),
	SCMP_SYS(readlink), SCMP_SYS(readlinkat),  SCMP_SYS(setrlimit), SCMP_SYS(sigaltstack),
	SCMP_SYS(stat),     SCMP_SYS(statx),       SCMP_SYS(sysinfo),   SCMP_SYS(wait4),
};

/*
 * libcuda and libcudadebugger make these calls, and the thread library and loader under them.  Whoever connects to what
 * they listen on is not accepted: no session on a GPU has made that call.
 */
static const int driver_calls[] = {
	SCMP_SYS(clone), SCMP_SYS(clone3), SCMP_SYS(epoll_create),
	SCMP_SYS(fadvise64), SCMP_SYS(fallocate), SCMP_SYS(fchmod), SCMP_SYS(fdatasync),
	SCMP_SYS(flock), SCMP_SYS(fstatfs), SCMP_SYS(fsync), SCMP_SYS(get_mempolicy),
	SCMP_SYS(getcpu), SCMP_SYS(getpeername), SCMP_SYS(getpgrp), SCMP_SYS(getppid),
	SCMP_SYS(getresgid), SCMP_SYS(getresuid), SCMP_SYS(getrlimit), SCMP_SYS(getrusage),
	SCMP_SYS(getsockname), SCMP_SYS(getpriority), SCMP_SYS(gettimeofday), SCMP_SYS(kill),
	SCMP_SYS(mbind), SCMP_SYS(membarrier), SCMP_SYS(mincore), SCMP_SYS(mkdir), SCMP_SYS(mkdirat),
	SCMP_SYS(mlock), SCMP_SYS(mprotect), SCMP_SYS(msync), SCMP_SYS(munlock), SCMP_SYS(open),
	SCMP_SYS(openat), SCMP_SYS(pidfd_getfd), SCMP_SYS(pidfd_open), SCMP_SYS(pipe), SCMP_SYS(pipe2),
	SCMP_SYS(process_vm_writev), SCMP_SYS(pselect6), SCMP_SYS(pwrite64), SCMP_SYS(rename),
	SCMP_SYS(rseq), SCMP_SYS(rt_sigpending), SCMP_SYS(rt_sigtimedwait),
	SCMP_SYS(sched_get_priority_max), SCMP_SYS(sched_get_priority_min),
	SCMP_SYS(sched_getaffinity), SCMP_SYS(sched_getparam), SCMP_SYS(sched_getscheduler),
	SCMP_SYS(sched_setaffinity), SCMP_SYS(sched_setscheduler), SCMP_SYS(select),
	SCMP_SYS(set_mempolicy), SCMP_SYS(set_robust_list), SCMP_SYS(set_tid_address),
	SCMP_SYS(setpriority), SCMP_SYS(sigaltstack),
	SCMP_SYS(statfs), SCMP_SYS(sysinfo), SCMP_SYS(time), SCMP_SYS(timerfd_gettime),
	SCMP_SYS(times), SCMP_SYS(umask),
};

/* A driver's sockets are made, bound and connected by the connect broker, which answers for its files, too. */
static const int broker_calls[] = { SCMP_SYS(socket), SCMP_SYS(bind),     SCMP_SYS(listen),  SCMP_SYS(connect),
				    SCMP_SYS(unlink), SCMP_SYS(unlinkat), SCMP_SYS(symlink), SCMP_SYS(symlinkat) };

/* All that a tracer needs, for it gets nothing of the common ones.  setitimer ends a stop that takes too long. */
static const int tracer_calls[] = {
	SCMP_SYS(clock_gettime), SCMP_SYS(close), SCMP_SYS(exit), SCMP_SYS(exit_group),
	SCMP_SYS(newfstatat), SCMP_SYS(pidfd_getfd), SCMP_SYS(poll), SCMP_SYS(ppoll),
	SCMP_SYS(pread64), SCMP_SYS(process_vm_readv), SCMP_SYS(read), SCMP_SYS(readlinkat), SCMP_SYS(recvmsg),
	SCMP_SYS(restart_syscall), SCMP_SYS(rt_sigreturn), SCMP_SYS(sendmsg), SCMP_SYS(setitimer),
	SCMP_SYS(wait4), SCMP_SYS(waitid),
};
/*
 * The judge's calls, and those of its children: one becomes a user and tries to look at a process, the
 * other one becomes nobody and closes a socket.
 */
static const int judge_calls[] = {
	SCMP_SYS(accept4), SCMP_SYS(capget), SCMP_SYS(capset), SCMP_SYS(close_range), SCMP_SYS(getresuid),
	SCMP_SYS(kill), SCMP_SYS(pidfd_open), SCMP_SYS(pipe2), SCMP_SYS(readlink), SCMP_SYS(setgroups),
	SCMP_SYS(setresgid), SCMP_SYS(setresuid), SCMP_SYS(setsid), SCMP_SYS(signalfd4), SCMP_SYS(stat),
	SCMP_SYS(wait4),
};

/* setitimer ends a call that takes too long. */
static const int connect_calls[] = { SCMP_SYS(bind), SCMP_SYS(connect), SCMP_SYS(listen), SCMP_SYS(setitimer) };

static const int store_calls[] = {
	SCMP_SYS(fadvise64), SCMP_SYS(fallocate), SCMP_SYS(flock), SCMP_SYS(fsetxattr),
	SCMP_SYS(fstatfs), SCMP_SYS(fsync), SCMP_SYS(getdents64), SCMP_SYS(linkat),
	SCMP_SYS(openat), SCMP_SYS(renameat), SCMP_SYS(renameat2), SCMP_SYS(statx),
	SCMP_SYS(unlinkat),
};

/*
 * No process of the agent makes one of these, nor does anything that it starts: they change the machine, its
 * kernel, or what a process sees of it.  Only a connect broker that a service manager starts may enter a
 * network namespace, where an administrator allows it (systemd/connect-containers.conf).
 */
static const int never_calls[] = {
	SCMP_SYS(acct), SCMP_SYS(add_key), SCMP_SYS(adjtimex), SCMP_SYS(bpf), SCMP_SYS(chroot),
	SCMP_SYS(clock_adjtime), SCMP_SYS(clock_settime), SCMP_SYS(delete_module),
	SCMP_SYS(fanotify_init), SCMP_SYS(finit_module), SCMP_SYS(fsconfig), SCMP_SYS(fsmount),
	SCMP_SYS(fsopen), SCMP_SYS(fspick), SCMP_SYS(init_module), SCMP_SYS(io_uring_enter),
	SCMP_SYS(io_uring_register), SCMP_SYS(io_uring_setup), SCMP_SYS(ioperm), SCMP_SYS(iopl),
	SCMP_SYS(kexec_file_load), SCMP_SYS(kexec_load), SCMP_SYS(keyctl), SCMP_SYS(mount),
	SCMP_SYS(mount_setattr), SCMP_SYS(move_mount), SCMP_SYS(name_to_handle_at),
	SCMP_SYS(open_by_handle_at), SCMP_SYS(open_tree), SCMP_SYS(perf_event_open),
	SCMP_SYS(pivot_root), SCMP_SYS(process_madvise), SCMP_SYS(quotactl), SCMP_SYS(reboot),
	SCMP_SYS(request_key), SCMP_SYS(setdomainname), SCMP_SYS(sethostname), SCMP_SYS(setns),
	SCMP_SYS(settimeofday), SCMP_SYS(swapoff), SCMP_SYS(swapon), SCMP_SYS(syslog), SCMP_SYS(umount2),
	SCMP_SYS(unshare), SCMP_SYS(userfaultfd), SCMP_SYS(vhangup),
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* The sanitizer's runtime itself needs these, the leak check at exit included. */
static const int runtime_calls[] = {
	SCMP_SYS(clone), SCMP_SYS(getppid), SCMP_SYS(ioctl), SCMP_SYS(mprotect), SCMP_SYS(open),
	SCMP_SYS(openat), SCMP_SYS(pipe2), SCMP_SYS(ptrace), SCMP_SYS(readlink),
	SCMP_SYS(sched_yield), SCMP_SYS(set_robust_list), SCMP_SYS(sigaltstack), SCMP_SYS(stat),
	SCMP_SYS(getdents), SCMP_SYS(getdents64), SCMP_SYS(tgkill), SCMP_SYS(wait4), SCMP_SYS(kill),
	SCMP_SYS(sched_getaffinity), SCMP_SYS(getrlimit), SCMP_SYS(rseq), SCMP_SYS(unlink),
};
#else
static const int runtime_calls[] = { SCMP_SYS(tgkill), SCMP_SYS(sched_yield) };
#endif

/*
 * Calls that do the same: newer processors lack the first ones (include/uapi/asm-generic/unistd.h), where the C
 * library makes the others, and libseccomp says nothing of a call that the processor does not have.
 */
static const int same_calls[][3] = {
	{ SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2) },
	{ SCMP_SYS(dup2), SCMP_SYS(dup3), SCMP_SYS(dup3) },
	{ SCMP_SYS(getpgrp), SCMP_SYS(getpgid), SCMP_SYS(getpgid) },
	{ SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2) },
};

static void release(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}

static int allow_call(scmp_filter_ctx ctx, int call)
{
	int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, call, 0);

	for (size_t i = 0; i < ARRAY_SIZE(same_calls); i++)
		for (size_t k = 1; same_calls[i][0] == call && k < ARRAY_SIZE(same_calls[i]) && r == 0; k++)
			r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, same_calls[i][k], 0);
	return r;
}

static int allow(scmp_filter_ctx ctx, const int *calls, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = allow_call(ctx, calls[i]);
	return r;
}

/* Files may be opened, but only for reading. */
static int allow_read_only_open(scmp_filter_ctx ctx)
{
	const unsigned forbidden = O_ACCMODE | O_CREAT | O_TRUNC;
	int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(openat), 1,
				 SCMP_A2(SCMP_CMP_MASKED_EQ, forbidden, 0));

	return r < 0 ? r : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(open), 1,
					    SCMP_A1(SCMP_CMP_MASKED_EQ, forbidden, 0));
}

/*
 * The process may start threads, but no processes.  A filter cannot see the flags that clone3 is
 * given, and the C library falls back to clone only if clone3 fails with ENOSYS.
 */
static int allow_threads(scmp_filter_ctx ctx)
{
	int r = allow(ctx, thread_calls, ARRAY_SIZE(thread_calls));

	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return r < 0 ? r
		     : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
					SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
}

/* The process may start threads and processes, but none in a namespace of its own. */
static int allow_child(scmp_filter_ctx ctx)
{
	const unsigned spaces = CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS |
				CLONE_NEWPID | CLONE_NEWUSER | CLONE_NEWUTS;
	int r = allow_read_only_open(ctx);

	if (r == 0)
		r = allow(ctx, thread_calls, ARRAY_SIZE(thread_calls));
	if (r == 0)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return r < 0 ? r : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
					    SCMP_A0(SCMP_CMP_MASKED_EQ, spaces, 0));
}

static int allow_ptrace(scmp_filter_ctx ctx, const unsigned *requests, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ptrace), 1,
					 SCMP_A0(SCMP_CMP_EQ, requests[i]));

		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * The end of this process must never be the target's: PTRACE_O_EXITKILL cannot be set here, nor
 * later by PTRACE_SETOPTIONS, which is not on the list.
 */
static int allow_seize(scmp_filter_ctx ctx, uint64_t options)
{
	return seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ptrace), 2,
				SCMP_A0(SCMP_CMP_EQ, PTRACE_SEIZE), SCMP_A3(SCMP_CMP_EQ, options));
}

/*
 * Seizing the leader of a target that uses KFD, and letting it go, need these requests and no more.
 * The kernel judges a tracer by the rights that it had when it seized (kernel/ptrace.c,
 * ptracer_capable()).  If the target has executed a privileged program since, a tracer that had
 * CAP_SYS_PTRACE then could read and change everything in it.
 */
static int allow_tracing(scmp_filter_ctx ctx)
{
	static const unsigned requests[] = { PTRACE_INTERRUPT, PTRACE_LISTEN, PTRACE_CONT,
					     PTRACE_DETACH };
	int r = allow_ptrace(ctx, requests, ARRAY_SIZE(requests));

	if (r == 0)
		r = allow_seize(ctx, 0);
	return r < 0 ? r : allow_seize(ctx, PTRACE_O_TRACEEXEC);
}

/* A call in the target and the thread's way back need these (libcudbgshim/src/tracer_direct.c). */
static int allow_calls_in_target(scmp_filter_ctx ctx)
{
	static const unsigned requests[] = { PTRACE_INTERRUPT, PTRACE_LISTEN, PTRACE_CONT, PTRACE_DETACH,
					     PTRACE_GETREGSET, PTRACE_SETREGSET, PTRACE_GETSIGINFO,
					     PTRACE_GETSIGMASK, PTRACE_SETSIGMASK, PTRACE_SYSCALL,
					     GET_RSEQ_CONFIGURATION };
	int r = allow_ptrace(ctx, requests, ARRAY_SIZE(requests));

	return r < 0 ? r : allow_seize(ctx, PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC);
}

static int allow_look(scmp_filter_ctx ctx)
{
	int r = allow_read_only_open(ctx);

	return r < 0 ? r : allow_threads(ctx);
}

static int allow_session(scmp_filter_ctx ctx)
{
	int r = allow(ctx, session_calls, ARRAY_SIZE(session_calls));

	if (r == 0)
		r = allow_look(ctx);
	return r < 0 ? r : allow_tracing(ctx);
}

static int allow_session_registers(scmp_filter_ctx ctx)
{
	static const unsigned request = PTRACE_GETREGSET;
	int r = allow_session(ctx);

	return r < 0 ? r : allow_ptrace(ctx, &request, 1);
}

/* Nothing can be sent from such a socket to anybody whom connect(2) has not reached: no datagrams. */
static int allow_connected_sockets(scmp_filter_ctx ctx, int call)
{
	static const unsigned types[] = { SOCK_STREAM, SOCK_SEQPACKET };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(types) && r == 0; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, call, 2, SCMP_A0(SCMP_CMP_EQ, AF_UNIX),
				     SCMP_A1(SCMP_CMP_MASKED_EQ, SOCKET_TYPE, types[i]));
	return r;
}

static int allow_driver(scmp_filter_ctx ctx)
{
	int r = allow(ctx, session_calls, ARRAY_SIZE(session_calls));

	if (r == 0)
		r = allow(ctx, driver_calls, ARRAY_SIZE(driver_calls));
	return r;
}

static int allow_driver_that_traces(scmp_filter_ctx ctx)
{
	int r = allow_driver(ctx);

	return r < 0 ? r : allow_calls_in_target(ctx);
}

static int allow_tracer(scmp_filter_ctx ctx)
{
	int r = allow_read_only_open(ctx);

	return r < 0 ? r : allow_calls_in_target(ctx);
}

/* With that flag, sending connects a socket of the internet (tcp(7)), which is what connect(2) is judged for. */
static int allow_sending(scmp_filter_ctx ctx)
{
	int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(sendto), 1,
				 SCMP_A3(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0));

	return r < 0 ? r : seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(sendmsg), 1,
					    SCMP_A2(SCMP_CMP_MASKED_EQ, MSG_FASTOPEN, 0));
}

static int allow_common(scmp_filter_ctx ctx)
{
	int r = allow(ctx, common_calls, ARRAY_SIZE(common_calls));

	if (r == 0)
		r = allow_sending(ctx);

	if (r == 0)
		r = allow_connected_sockets(ctx, SCMP_SYS(socketpair));
	return r < 0 ? r : allow(ctx, runtime_calls, ARRAY_SIZE(runtime_calls));
}

/* The requests of linux/seccomp.h are the only ones, on whatever descriptor the worker has sent. */
static int allow_broker(scmp_filter_ctx ctx)
{
	static const unsigned requests[] = { SECCOMP_IOCTL_NOTIF_RECV, SECCOMP_IOCTL_NOTIF_SEND,
					     SECCOMP_IOCTL_NOTIF_ID_VALID, SECCOMP_IOCTL_NOTIF_ADDFD };
	int r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX));

	for (size_t i = 0; i < ARRAY_SIZE(requests) && r == 0; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1,
				     SCMP_A1(SCMP_CMP_EQ, requests[i]));
	return r;
}

/* Whose a user namespace is, and which one it lies in (linux/nsfs.h). */
static int allow_judge(scmp_filter_ctx ctx)
{
	static const unsigned requests[] = { NS_GET_PARENT, NS_GET_OWNER_UID };
	int r = allow_child(ctx);

	for (size_t i = 0; i < ARRAY_SIZE(requests) && r == 0; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ALLOW, SCMP_SYS(ioctl), 1, SCMP_A1(SCMP_CMP_EQ, requests[i]));
	return r;
}

/*
 * Build a filter and load it.
 * @param otherwise  What becomes of calls that are not on the list.
 * @param begin  Adds the calls of every process of a kind.
 * @param more   Adds rules that look at arguments, or NULL.
 * @param ret_notify  Calls of sandbox_asks_broker() wait for whoever has this descriptor; NULL: they are as all others.
 */
static int apply_to(uint32_t otherwise, int (*begin)(scmp_filter_ctx), const int *extra, size_t n_extra,
		    int (*more)(scmp_filter_ctx), int *ret_notify)
{
	auto_call(release) scmp_filter_ctx ctx = seccomp_init(otherwise);
	int r;

	if (!ctx)
		return -ENOMEM;
	/* Calls of another architecture or of x32 fail as calls that are not on the list do. */
	r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
	if (r == 0 && begin)
		r = begin(ctx);
	if (r == 0)
		r = allow(ctx, extra, n_extra);
	if (r == 0 && more)
		r = more(ctx);
	for (size_t i = 0; i < ARRAY_SIZE(broker_calls) && r == 0 && ret_notify && otherwise != SCMP_ACT_NOTIFY; i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_NOTIFY, broker_calls[i], 0);
	/* The load comes last: once it has succeeded, nothing can fail any more. */
	if (r == 0)
		r = seccomp_load(ctx);
	if (r == 0 && ret_notify)
		*ret_notify = seccomp_notify_fd(ctx);
	return r;
}

static int apply(const int *extra, size_t n_extra, int (*more)(scmp_filter_ctx))
{
	return apply_to(REFUSE, allow_common, extra, n_extra, more, NULL);
}

int sandbox_agent(void)
{
	auto_call(release) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);
	int r;

	if (!ctx)
		return -ENOMEM;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -errno;
	r = seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM));
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(never_calls); i++)
		r = seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EPERM), never_calls[i], 0);
	return r < 0 ? r : seccomp_load(ctx);
}

int sandbox_judge(void)
{
	return apply(judge_calls, ARRAY_SIZE(judge_calls), allow_judge);
}

int sandbox_front(void)
{
	return apply(NULL, 0, NULL);
}

/* A sanitizer's runtime reserves terabytes of address space. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ADDRESS_SPACE RLIM_INFINITY
#else
#define ADDRESS_SPACE ((rlim_t)2 << 30)
#endif

/* A hostile code object that gets past the parsers' limits then harms the worker alone. */
static int limit_memory(__rlimit_resource_t resource)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) < 0)
		return -errno;
	if (limit.rlim_max > ADDRESS_SPACE)
		limit.rlim_max = ADDRESS_SPACE;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	return setrlimit(resource, &limit) < 0 ? -errno : 0;
}

int sandbox_look(void)
{
	int r = limit_memory(RLIMIT_AS);

	return r < 0 ? r : apply(look_calls, ARRAY_SIZE(look_calls), allow_look);
}

static int allow_host(scmp_filter_ctx ctx)
{
	static const int calls[] = { SCMP_SYS(fstatfs), SCMP_SYS(process_vm_readv) };
	int r = allow(ctx, calls, ARRAY_SIZE(calls));

	return r < 0 ? r : allow_look(ctx);
}

int sandbox_host(void)
{
	int r = limit_memory(RLIMIT_AS);

	return r < 0 ? r : apply(look_calls, ARRAY_SIZE(look_calls), allow_host);
}

int sandbox_worker(bool registers)
{
	int r = limit_memory(RLIMIT_AS);

	return r < 0 ? r : apply(look_calls, ARRAY_SIZE(look_calls),
				 registers ? allow_session_registers : allow_session);
}

int sandbox_core(void)
{
	/* RLIMIT_DATA bounds private writable memory; the core file is mapped read-only. */
	int r = limit_memory(RLIMIT_DATA);

	if (r == 0)
		r = landlock_read_only();
	return r < 0 ? r : apply(core_calls, ARRAY_SIZE(core_calls), allow_read_only_open);
}

bool sandbox_asks_broker(int call)
{
	for (size_t i = 0; i < ARRAY_SIZE(broker_calls); i++)
		if (broker_calls[i] == call)
			return true;
	return false;
}

int sandbox_worker_driver(bool traces, bool permissive, int *ret_notify)
{
	return apply_to(permissive && ret_notify ? SCMP_ACT_NOTIFY : REFUSE, allow_common, look_calls,
			ARRAY_SIZE(look_calls),
			traces ? allow_driver_that_traces : allow_driver, ret_notify);
}

/* A sanitizer's runtime needs what every other process may. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TRACER_COMMON allow_common
#else
#define TRACER_COMMON NULL
#endif

int sandbox_tracer(void)
{
	return apply_to(REFUSE, TRACER_COMMON, tracer_calls, ARRAY_SIZE(tracer_calls), allow_tracer, NULL);
}

int sandbox_connect(void)
{
	return apply(connect_calls, ARRAY_SIZE(connect_calls), allow_broker);
}

int sandbox_adapter(void)
{
	int r = limit_memory(RLIMIT_AS);

	if (r == 0)
		r = landlock_read_only();
	return r < 0 ? r : apply(adapter_calls, ARRAY_SIZE(adapter_calls), allow_child);
}

int sandbox_parser(void)
{
	int r = limit_memory(RLIMIT_AS);

	if (r == 0)
		r = landlock_forbid_files();
	return r < 0 ? r : apply(NULL, 0, NULL);
}

int sandbox_store(int dir_fd)
{
	int r = landlock_keep_beneath(dir_fd);

	return r < 0 ? r : apply(store_calls, ARRAY_SIZE(store_calls), NULL);
}
