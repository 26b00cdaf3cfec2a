/* SPDX-License-Identifier: MIT */
/*
 * For test_sandbox.py: one program behind each system-call filter, to see what is refused there.  Built
 * without sanitizers, whose runtime the filters make room for.
 *
 *   sandbox_probe calls PROFILE      each call of a table, in a process of its own: "NAME ERRNO"
 *   sandbox_probe files PROFILE KEPT OTHER
 *                                    what can be done with files in the directory KEPT, which is the
 *                                    store's, and in OTHER; both have a file `there`
 *   sandbox_probe trace PROFILE FILE NODUMP WHO
 *                                    seizes a process of user 1000 as a worker does, lets its first
 *                                    thread, another one or a child (main, thread, child) execute the
 *                                    set-user-id program FILE, and tries to look into that
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/privileges.h"
#include "agentd/sandbox.h"

#define USER 1000
#define NOBODY_THERE 0x3fffffff /* above any pid */
#define X32 0x40000000
/* Requests that x86-64 has; sys/ptrace.h of other processors does not name them. */
#define GETREGS 12
#define SETREGS 13

static int none(void)
{
	return 0;
}

static int session(void)
{
	return sandbox_worker(false);
}

static int session_registers(void)
{
	return sandbox_worker(true);
}

static int kept_fd = -1;

static int store(void)
{
	return sandbox_store(kept_fd);
}

/* Nobody answers for it. */
static int driver_that(bool traces)
{
	int notify, r = sandbox_worker_driver(traces, false, &notify);

	if (r == 0)
		close(notify);
	return r;
}

static int driver(void)
{
	return driver_that(true);
}

static int driver_traced(void)
{
	return driver_that(false);
}

/* Which puts a target right, and connects to nobody. */
static int driver_rescue(void)
{
	return sandbox_worker_driver(true, false, NULL);
}

static const struct {
	const char *name;
	int (*enter)(void);
} profiles[] = {
	{ "none", none },
	{ "agent", sandbox_agent },
	{ "judge", sandbox_judge },
	{ "front", sandbox_front },
	{ "look", sandbox_look },
	{ "host", sandbox_host },
	{ "session", session },
	{ "session_registers", session_registers },
	{ "driver", driver },
	{ "driver_traced", driver_traced },
	{ "driver_rescue", driver_rescue },
	{ "tracer", sandbox_tracer },
	{ "core", sandbox_core },
	{ "parser", sandbox_parser },
	{ "adapter", sandbox_adapter },
	{ "store", store },
	{ "connect", sandbox_connect },
};

static int (*find_profile(const char *name))(void)
{
	for (size_t i = 0; i < sizeof(profiles) / sizeof(*profiles); i++)
		if (strcmp(profiles[i].name, name) == 0)
			return profiles[i].enter;
	fprintf(stderr, "there is no profile %s\n", name);
	exit(2);
}

/* Newer processors do not have these; a number that no kernel knows answers ENOSYS, filter or not. */
#ifndef SYS_fork
#define SYS_fork   NOBODY_THERE
#define SYS_chmod  NOBODY_THERE
#define SYS_chown  NOBODY_THERE
#define SYS_link   NOBODY_THERE
#define SYS_symlink NOBODY_THERE
#define SYS_creat  NOBODY_THERE
#define SYS_unlink NOBODY_THERE
#define SYS_access NOBODY_THERE
#define SYS_dup2   NOBODY_THERE
#define SYS_getpgrp NOBODY_THERE
#define SYS_rename NOBODY_THERE
#endif

/*
 * Arguments with which a call that is let through fails, with anything but EPERM, or does nothing.
 */
#define EXITKILL ((uintptr_t)PTRACE_O_EXITKILL)
#define TRACE(request) SYS_ptrace, { (request), NOBODY_THERE, 0, 0 }
static const char nowhere[] = "/nonexistent";
static const struct {
	const char *name;
	long nr;
	uintptr_t args[6];
} calls[] = {
	{ "execve", SYS_execve, { (uintptr_t)nowhere } },
	{ "execveat", SYS_execveat, { -1, (uintptr_t)nowhere } },
	{ "clone_process", SYS_clone, { SIGCHLD } },
	{ "fork", SYS_fork, { 0 } },
	{ "clone3", SYS_clone3, { 0 } },
	{ "unshare", SYS_unshare, { 0 } },
	{ "setns", SYS_setns, { -1, 0 } },
	{ "mount", SYS_mount, { 0, 0, 0, 0, 0 } },
	{ "umount2", SYS_umount2, { (uintptr_t)nowhere } },
	{ "chroot", SYS_chroot, { (uintptr_t)nowhere } },
	{ "pivot_root", SYS_pivot_root, { (uintptr_t)nowhere, (uintptr_t)nowhere } },
	{ "bpf", SYS_bpf, { -1, 0, 0 } },
	{ "perf_event_open", SYS_perf_event_open, { 0, 0, -1, -1, 0 } },
	{ "userfaultfd", SYS_userfaultfd, { -1 } },
	{ "io_uring_setup", SYS_io_uring_setup, { 1, 0 } },
	{ "init_module", SYS_init_module, { 0, 0, 0 } },
	{ "finit_module", SYS_finit_module, { -1, 0, 0 } },
	{ "keyctl", SYS_keyctl, { -1 } },
	{ "setuid", SYS_setuid, { 0 } },
	{ "setresuid", SYS_setresuid, { -1, -1, -1 } },
	{ "capset", SYS_capset, { 0, 0 } },
	{ "chmod", SYS_chmod, { (uintptr_t)nowhere, 0 } },
	{ "chown", SYS_chown, { (uintptr_t)nowhere, -1, -1 } },
	{ "link", SYS_link, { (uintptr_t)nowhere, (uintptr_t)nowhere } },
	{ "symlink", SYS_symlink, { (uintptr_t)nowhere, (uintptr_t) "/nonexistent/x" } },
	{ "open_to_write", SYS_openat, { AT_FDCWD, (uintptr_t)nowhere, O_WRONLY } },
	{ "open_to_create", SYS_openat, { AT_FDCWD, (uintptr_t) "/nonexistent/x", O_CREAT, 0600 } },
	{ "creat", SYS_creat, { (uintptr_t) "/nonexistent/x", 0600 } },
	{ "open", SYS_openat, { AT_FDCWD, (uintptr_t)nowhere, O_RDONLY } },
	{ "open_by_handle_at", SYS_open_by_handle_at, { -1, 0, 0 } },
	{ "unlink", SYS_unlink, { (uintptr_t)nowhere } },
	{ "access", SYS_access, { (uintptr_t)nowhere, 0 } },
	{ "faccessat", SYS_faccessat, { AT_FDCWD, (uintptr_t)nowhere, 0 } },
	{ "faccessat2", SYS_faccessat2, { AT_FDCWD, (uintptr_t)nowhere, 0, 0 } },
	{ "dup2", SYS_dup2, { -1, 0 } },
	{ "dup3", SYS_dup3, { -1, 0, 0 } },
	{ "getpgrp", SYS_getpgrp, { 0 } },
	{ "getpgid", SYS_getpgid, { 0 } },
	{ "rename", SYS_rename, { (uintptr_t)nowhere, (uintptr_t)nowhere } },
	{ "renameat", SYS_renameat, { AT_FDCWD, (uintptr_t)nowhere, AT_FDCWD, (uintptr_t)nowhere } },
	{ "renameat2", SYS_renameat2, { AT_FDCWD, (uintptr_t)nowhere, AT_FDCWD, (uintptr_t)nowhere, 0 } },
	{ "kill", SYS_kill, { NOBODY_THERE, 0 } },
	{ "pidfd_open", SYS_pidfd_open, { NOBODY_THERE, 0 } },
	{ "pidfd_send_signal", SYS_pidfd_send_signal, { -1, 0, 0, 0 } },
	{ "pidfd_getfd", SYS_pidfd_getfd, { -1, 0, 0 } },
	{ "kcmp", SYS_kcmp, { NOBODY_THERE, NOBODY_THERE, KCMP_VM } },
	{ "process_vm_readv", SYS_process_vm_readv, { NOBODY_THERE, 0, 0, 0, 0, 0 } },
	{ "process_vm_writev", SYS_process_vm_writev, { NOBODY_THERE, 0, 0, 0, 0, 0 } },
	{ "socket_unix", SYS_socket, { AF_UNIX, SOCK_STREAM } },
	{ "socket_unix_packets", SYS_socket, { AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC } },
	{ "socket_unix_datagrams", SYS_socket, { AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC } },
	{ "pair_of_datagrams", SYS_socketpair, { AF_UNIX, SOCK_DGRAM, 0, 0 } },
	{ "socket_inet", SYS_socket, { AF_INET, SOCK_STREAM } },
	{ "socket_inet6", SYS_socket, { AF_INET6, SOCK_DGRAM } },
	{ "socket_netlink", SYS_socket, { AF_NETLINK, SOCK_RAW } },
	{ "socket_packet", SYS_socket, { AF_PACKET, SOCK_RAW } },
	{ "socket_high", SYS_socket, { AF_INET | 1ul << 32, SOCK_STREAM } },
	{ "connect", SYS_connect, { -1, 0, 0 } },
	{ "bind", SYS_bind, { -1, 0, 0 } },
	{ "listen", SYS_listen, { -1, 0 } },
	{ "accept", SYS_accept, { -1, 0, 0 } },
	{ "accept4", SYS_accept4, { -1, 0, 0, 0 } },
	{ "ioctl", SYS_ioctl, { -1, 0, 0 } },
	{ "ioctl_notify", SYS_ioctl, { -1, SECCOMP_IOCTL_NOTIF_RECV, 0 } },
	{ "ptrace_seize", TRACE(PTRACE_SEIZE) },
	{ "ptrace_seize_exec", SYS_ptrace, { PTRACE_SEIZE, NOBODY_THERE, 0, PTRACE_O_TRACEEXEC } },
	{ "ptrace_seize_calls", SYS_ptrace,
	  { PTRACE_SEIZE, NOBODY_THERE, 0, PTRACE_O_TRACEEXEC | PTRACE_O_TRACESYSGOOD } },
	{ "ptrace_seize_exitkill", SYS_ptrace, { PTRACE_SEIZE, NOBODY_THERE, 0, EXITKILL } },
	{ "ptrace_seize_exec_exitkill", SYS_ptrace,
	  { PTRACE_SEIZE, NOBODY_THERE, 0, EXITKILL | PTRACE_O_TRACEEXEC } },
	{ "ptrace_interrupt", TRACE(PTRACE_INTERRUPT) },
	{ "ptrace_listen", TRACE(PTRACE_LISTEN) },
	{ "ptrace_cont", TRACE(PTRACE_CONT) },
	{ "ptrace_detach", TRACE(PTRACE_DETACH) },
	{ "ptrace_getregset", TRACE(PTRACE_GETREGSET) },
	{ "ptrace_setregset", TRACE(PTRACE_SETREGSET) },
	{ "ptrace_getregs", TRACE(GETREGS) },
	{ "ptrace_setregs", TRACE(SETREGS) },
	{ "ptrace_getsiginfo", TRACE(PTRACE_GETSIGINFO) },
	{ "ptrace_setsiginfo", TRACE(PTRACE_SETSIGINFO) },
	{ "ptrace_syscall", TRACE(PTRACE_SYSCALL) },
	{ "ptrace_attach", TRACE(PTRACE_ATTACH) },
	{ "ptrace_setoptions", TRACE(PTRACE_SETOPTIONS) },
	{ "ptrace_peektext", TRACE(PTRACE_PEEKTEXT) },
	{ "ptrace_peekdata", TRACE(PTRACE_PEEKDATA) },
	{ "ptrace_peekuser", TRACE(PTRACE_PEEKUSER) },
	{ "ptrace_poketext", TRACE(PTRACE_POKETEXT) },
	{ "ptrace_pokedata", TRACE(PTRACE_POKEDATA) },
	{ "ptrace_pokeuser", TRACE(PTRACE_POKEUSER) },
	{ "ptrace_singlestep", TRACE(PTRACE_SINGLESTEP) },
	{ "ptrace_kill", TRACE(PTRACE_KILL) },
	{ "ptrace_high", TRACE(PTRACE_SEIZE | 1ul << 32) },
	{ "x32_getpid", X32 | SYS_getpid, { 0 } },
	{ "x32_ptrace", X32 | 521, { PTRACE_PEEKDATA, NOBODY_THERE } },
	{ "x32_execve", X32 | 520, { (uintptr_t)nowhere } },
};

static _Noreturn void enter_and_call(int (*enter)(void), size_t i)
{
	const uintptr_t *a = calls[i].args;
	long r;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || enter() < 0)
		_exit(255);
	r = syscall(calls[i].nr, a[0], a[1], a[2], a[3], a[4], a[5]);
	_exit(r < 0 ? errno : 0);
}

static int try_calls(int (*enter)(void))
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		pid_t child = fork();
		int status;

		if (child == 0)
			enter_and_call(enter, i);
		if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
		    WEXITSTATUS(status) == 255)
			return 1;
		printf("%s %d\n", calls[i].name, WEXITSTATUS(status));
	}
	return 0;
}

/* ------------------------------------------------------------------ files -------------------- */

static int said(long r)
{
	return r < 0 ? errno : 0;
}

/* What a filter lets through or does not know; Landlock is asked as well. */
static void try_files(const char *where, int dir)
{
	printf("%s_read %d\n", where, said(openat(dir, "there", O_RDONLY)));
	printf("%s_list %d\n", where, said(openat(dir, ".", O_RDONLY | O_DIRECTORY)));
	printf("%s_write %d\n", where, said(openat(dir, "there", O_WRONLY)));
	printf("%s_create %d\n", where, said(openat(dir, "new", O_WRONLY | O_CREAT | O_EXCL, 0600)));
	printf("%s_unlink %d\n", where, said(unlinkat(dir, "new", 0)));
}

static int try_all_files(int (*enter)(void), const char *kept, const char *other)
{
	int other_fd = open(other, O_PATH | O_DIRECTORY);

	kept_fd = open(kept, O_RDONLY | O_DIRECTORY);
	if (kept_fd < 0 || other_fd < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || enter() < 0)
		return 1;
	try_files("kept", kept_fd);
	try_files("other", other_fd);
	printf("moved_out %d\n", said(renameat(kept_fd, "there", other_fd, "moved")));
	printf("linked_in %d\n", said(linkat(other_fd, "there", kept_fd, "linked", 0)));
	/* A name in the store that leads out of it. */
	printf("by_symlink %d\n", said(openat(kept_fd, "out", O_RDONLY)));
	printf("by_dots %d\n", said(openat(kept_fd, "../other/there", O_RDONLY)));
	fflush(stdout);
	return 0;
}

/* ------------------------------------------------------------------ a set-user-id program ---- */

static const char *the_file;

static void *execute(void *unused)
{
	(void)unused;
	/* Whoever reads what we print waits for its end. */
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	execl(the_file, the_file, "60", NULL);
	_exit(1);
}

/* @return only where somebody else executes the file. */
static void execute_by(const char *who)
{
	pthread_t thread;

	if (strcmp(who, "main") == 0 || (strcmp(who, "child") == 0 && fork() == 0))
		execute(NULL);
	if (strcmp(who, "thread") == 0)
		pthread_create(&thread, NULL, execute, NULL);
}

static pid_t start_target(const char *file, bool dumpable, const char *who, int *ret_go)
{
	int go[2], ready[2];
	char byte;
	pid_t child;

	if (pipe(go) < 0 || pipe(ready) < 0)
		return -1;
	child = fork();
	if (child == 0) {
		if (setresgid(USER, USER, USER) < 0 || setresuid(USER, USER, USER) < 0 ||
		    prctl(PR_SET_DUMPABLE, dumpable) < 0 || write(ready[1], "", 1) != 1 ||
		    read(go[0], &byte, 1) != 1)
			_exit(1);
		the_file = file;
		execute_by(who);
		close(STDOUT_FILENO);
		close(STDERR_FILENO);
		for (;;)
			pause();
	}
	if (read(ready[0], &byte, 1) != 1)
		return -1;
	*ret_go = go[1];
	return child;
}

static void look_into(pid_t pid, int pidfd, int old_mem)
{
	struct user_regs_struct regs;
	struct iovec v = { &regs, sizeof(regs) }, none_there = { &regs, 0 };
	uintptr_t byte;
	struct iovec to = { &byte, 1 }, from = { (void *)8, 1 };
	char path[32];

	errno = 0;
	ptrace(PTRACE_PEEKUSER, pid, 0, 0);
	printf("peekuser %d\n", errno);
	errno = 0;
	ptrace(PTRACE_PEEKDATA, pid, 8, 0);
	printf("peekdata %d\n", errno);
	printf("getregset %d\n", said(ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &v)));
	printf("setregset %d\n", said(ptrace(PTRACE_SETREGSET, pid, NT_PRSTATUS, &none_there)));
	printf("process_vm_readv %d\n", said(process_vm_readv(pid, &to, 1, &from, 1, 0)));
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	printf("mem %d\n", said(open(path, O_RDONLY)));
	printf("pidfd_getfd %d\n", said(syscall(SYS_pidfd_getfd, pidfd, 0, 0)));
	/* The program's first byte may be anything but a page that was there before. */
	printf("old_mem %d\n", pread(old_mem, &byte, 1, (off_t)(uintptr_t)&nowhere) == 1 ? 0 : ESRCH);
}

static void print_uids(pid_t pid)
{
	char path[40], line[160];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "Uid:", 4) == 0)
			printf("%s", line);
	if (f)
		fclose(f);
}

/* As agentd/worker/target/target.c. */
static int seize_and_drop(pid_t pid, int (*enter)(void))
{
	if (privileges_lay_down_tracer(USER, USER) < 0)
		return -1;
	if (ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC) == 0)
		puts("seized_as user");
	else if (privileges_take_up_tracer() == 0 && ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC) == 0)
		puts("seized_as tracer");
	else
		return -1;
	return privileges_become(USER, USER) < 0 || enter() < 0 ? -1 : 0;
}

/* The child of a process that has one. */
static pid_t only_child(pid_t pid)
{
	char path[64], text[16] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return 0;
	close(fd);
	return (pid_t)atoi(text);
}

/* Wait until the file is executed.  @return by which process, 0: by none. */
static pid_t await_exec(pid_t pid, const char *who)
{
	char path[32], comm[16];
	const char *name = strrchr(the_file, '/') + 1;

	for (int i = 0; i < 5000; i++) {
		pid_t by = strcmp(who, "child") == 0 ? only_child(pid) : pid;
		int fd;
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/comm", (int)by);
		fd = by ? open(path, O_RDONLY) : -1;
		n = fd < 0 ? 0 : read(fd, comm, sizeof(comm));
		close(fd);
		if (n > 1 && strncmp(comm, name, (size_t)n - 1) == 0)
			return by;
		poll(NULL, 0, 1);
	}
	return 0;
}

/*
 * Only of the first thread's exec is its tracer told.  A worker whose tracer is another process has
 * seized nobody.
 */
static int trace(const char *profile, const char *file, bool dumpable, const char *who)
{
	int (*enter)(void) = find_profile(profile);
	bool seizes = strcmp(profile, "driver_traced") != 0;
	int go = -1, status = 0, pidfd, old_mem;
	pid_t pid = start_target(file, dumpable, who, &go);
	char path[32];

	the_file = file;
	printf("pid %d\n", (int)pid);
	if (pid < 0)
		return 1;
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	old_mem = open(path, O_RDONLY);
	if ((seizes ? seize_and_drop(pid, enter) : privileges_become(USER, USER) < 0 ? -1 : enter()) < 0 ||
	    write(go, "", 1) != 1)
		return 1;
	if (seizes && strcmp(who, "main") == 0 &&
	    (waitpid(pid, &status, __WALL) != pid || status >> 8 != (SIGTRAP | PTRACE_EVENT_EXEC << 8))) {
		fprintf(stderr, "no exec, but %#x\n", status);
		return 1;
	}
	pid = await_exec(pid, who);
	if (!pid)
		return 1;
	printf("by %d\n", (int)pid);
	print_uids(pid);
	look_into(pid, strcmp(who, "child") == 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : pidfd, old_mem);
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc == 3 && strcmp(argv[1], "calls") == 0)
		return try_calls(find_profile(argv[2]));
	if (argc == 5 && strcmp(argv[1], "files") == 0)
		return try_all_files(find_profile(argv[2]), argv[3], argv[4]);
	if (argc == 6 && strcmp(argv[1], "trace") == 0)
		return trace(argv[2], argv[3], strcmp(argv[4], "dump") == 0, argv[5]);
	return 2;
}
