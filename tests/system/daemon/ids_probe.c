/* SPDX-License-Identifier: MIT */
/*
 * For test_worker_ids.py: a worker that has fallen, behind its system-call filter, with this or that user's ids.
 * Built without sanitizers, whose runtime the filter makes room for.
 *
 *   ids_probe REAL   a worker attaches to a target of user 1000 as that user.  Then it takes REAL for its real,
 *                    effective and saved ids, and keeps 1000 for files.  The worker of another session, whose
 *                    target is of user 1001, has the ids REAL as well; where REAL is 1000, those of its own target
 *
 * Prints what user 1000 is answered, who turns against the worker, and what the worker is answered: "NAME ERRNO".
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/privileges.h"
#include "agentd/sandbox.h"

#define USER 1000
#define OTHER_USER 1001
#define WAIT_MS 300

/* The children end when this process, which alone has the writing end, does. */
static int alive[2];
static const struct rlimit none;

struct child {
	pid_t pid, thread;
	int pidfd;
};

static int said(long r)
{
	return r < 0 ? errno : 0;
}

static void say(const char *name, int error)
{
	printf("%s %d\n", name, error);
}

static void *wait_for_end(void *unused)
{
	char byte;

	_exit(read(alive[0], &byte, 1) != 0);
	return unused;
}

static void *be_thread(void *ready)
{
	const pid_t tid = gettid();

	if (write(*(int *)ready, &tid, sizeof(tid)) < 0)
		_exit(1);
	return wait_for_end(NULL);
}

/* @param keep  It keeps root's capabilities.  @return false on failure. */
static bool start(struct child *c, uid_t uid, bool keep)
{
	pthread_t thread;
	int ready[2];

	if (pipe(ready) < 0)
		return false;
	c->pid = fork();
	if (c->pid == 0) {
		close(alive[1]);
		if (!keep && (setresgid(uid, uid, uid) < 0 || privileges_become(uid, uid) < 0))
			_exit(1);
		prctl(PR_SET_DUMPABLE, 1);
		pthread_create(&thread, NULL, be_thread, &ready[1]);
		wait_for_end(NULL);
	}
	close(ready[1]);
	c->pidfd = (int)syscall(SYS_pidfd_open, c->pid, 0);
	return read(ready[0], &c->thread, sizeof(c->thread)) == sizeof(c->thread);
}

/* Attach as the user, with nothing but the rights to change ids. */
static int attach(pid_t pid)
{
	static const cap_value_t caps[] = { CAP_SETUID, CAP_SETGID };
	cap_t keep = cap_init();

	if (setgroups(0, NULL) < 0 || prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 ||
	    setresgid(USER, USER, USER) < 0 || setresuid(USER, USER, USER) < 0 ||
	    cap_set_flag(keep, CAP_PERMITTED, 2, caps, CAP_SET) < 0 ||
	    cap_set_flag(keep, CAP_EFFECTIVE, 2, caps, CAP_SET) < 0 || cap_set_proc(keep) < 0)
		return -1;
	cap_free(keep);
	return (int)ptrace(PTRACE_SEIZE, pid, 0, PTRACE_O_TRACEEXEC);
}

/* The file system ids come last: the other calls set them, too. */
static int take_ids(uid_t real)
{
	if (setresgid(real, real, real) < 0 || setresuid(real, real, real) < 0)
		return -1;
	setfsgid(USER);
	setfsuid(USER);
	if (setfsuid((uid_t)-1) != USER || setfsgid((gid_t)-1) != USER)
		return -1;
	return privileges_give_up() < 0 || privileges_hide() < 0 ? -1 : sandbox_worker(true);
}

/* A signal for data that has come is sent to whoever was named, in the name of who has named it (fcntl(2)). */
static void signal_by_socket(const char *name, const struct child *c)
{
	struct pollfd p = { .fd = c->pidfd, .events = POLLIN };
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0 || fcntl(pair[0], F_SETOWN, c->pid) < 0 ||
	    fcntl(pair[0], F_SETSIG, SIGKILL) < 0 || fcntl(pair[0], F_SETFL, O_ASYNC) < 0 ||
	    write(pair[1], "", 1) != 1) {
		say(name, errno);
		return;
	}
	say(name, poll(&p, 1, WAIT_MS) == 1 ? 0 : EPERM);
}

static void limit(const char *name, const struct child *c)
{
	say(name, said(prlimit(c->pid, RLIMIT_CORE, &none, NULL)));
}

static void turn_against_others(const struct child *root, const struct child *worker)
{
	limit("limit_root", root);
	limit("limit_worker", worker);
	signal_by_socket("kill_root", root);
	signal_by_socket("kill_worker", worker);
}

/* What a session needs of its target later. */
static void use_target(const struct child *t, int memory)
{
	static const char text[] = "x";
	char path[40], byte;
	struct iovec to = { &byte, 1 }, from = { (void *)(uintptr_t)text, 1 };

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)t->pid);
	say("maps", said(open(path, O_RDONLY)));
	say("memory", pread(memory, &byte, 1, (off_t)(uintptr_t)text) == 1 ? 0 : EIO);
	say("process_vm_readv", said(process_vm_readv(t->pid, &to, 1, &from, 1, 0)));
	say("interrupt", said(ptrace(PTRACE_INTERRUPT, t->pid, 0, 0)));
	say("seize_thread", said(ptrace(PTRACE_SEIZE, t->thread, 0, 0)));
}

/* The user of the target, who waits until the worker is what it is. */
static pid_t start_user(pid_t worker, int *ret_go)
{
	cpu_set_t set;
	int go[2];
	char byte;
	pid_t pid;

	if (pipe(go) < 0)
		return -1;
	pid = fork();
	*ret_go = go[1];
	if (pid)
		return pid;
	close(alive[1]);
	if (privileges_become(USER, USER) < 0 || read(go[0], &byte, 1) != 1)
		_exit(1);
	sched_getaffinity(0, sizeof(set), &set);
	say("user_stops", said(kill(worker, SIGSTOP)));
	kill(worker, SIGCONT);
	say("user_limits", said(prlimit(worker, RLIMIT_CORE, &none, NULL)));
	say("user_binds", said(sched_setaffinity(worker, sizeof(set), &set)));
	say("user_renices", said(setpriority(PRIO_PROCESS, (id_t)worker, 10)));
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	const uid_t real = argc == 2 ? (uid_t)atoi(argv[1]) : 0;
	struct child target, root, worker;
	int go, memory, status;
	char path[40];
	pid_t user;

	if (argc != 2 || pipe(alive) < 0)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	user = start_user(getpid(), &go);
	if (user < 0 || !start(&target, USER, false) || !start(&root, 0, true) ||
	    !start(&worker, real == USER ? OTHER_USER : real, false))
		return 1;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)target.pid);
	memory = open(path, O_RDONLY);
	if (memory < 0 || attach(target.pid) < 0 || take_ids(real) < 0 || write(go, "", 1) != 1 ||
	    waitpid(user, &status, 0) != user || status)
		return 1;
	use_target(&target, memory);
	turn_against_others(&root, &worker);
	return 0;
}
