/* SPDX-License-Identifier: MIT */
#include "agentd/access.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agentd/oracle.h"
#include "agentd/privileges.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 has it: include/uapi/asm-generic/socket.h. */
#endif

#define PROC_STATUS_MAX (64 * 1024)
#define PROC_MAP_MAX (64 * 1024)
#define NS_DEPTH_MAX 33 /* The kernel's own limit is 32 levels. */
#define GROUPS_MAX 65536

/* If the groups do not fit, the kernel says in `size` how many bytes they take. */
int access_peer_groups(int sock, gid_t **ret, size_t *ret_n)
{
	socklen_t size = 64 * sizeof(gid_t);
	auto_free gid_t *groups = malloc(size);

	if (!groups)
		return -ENOMEM;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0) {
		gid_t *grown;

		if (errno != ERANGE || size > GROUPS_MAX * sizeof(gid_t))
			return -errno;
		grown = realloc(groups, size);
		if (!grown)
			return -ENOMEM;
		groups = grown;
		if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
			return -errno;
	}
	*ret = TAKE_PTR(groups);
	*ret_n = size / sizeof(gid_t);
	return 0;
}

/* Set `admin` and `observer` by the user, and by the primary and the supplementary groups. */
static void judge_ids(const struct access_rules *rules, struct access_peer *peer)
{
	peer->admin = peer->uid == 0;
	peer->observer = false;
	for (size_t i = 0; i <= peer->n_groups; i++) {
		gid_t gid = i < peer->n_groups ? peer->groups[i] : peer->gid;

		if (gid == ACCESS_NO_GROUP)
			continue;
		peer->admin |= gid == rules->admin_gid;
		peer->observer |= gid == rules->observer_gid;
	}
}

/*
 * Only the kernel knows which process connected.  If that process has been reaped, the kernel
 * answers EINVAL or, from Linux 6.16 on, a pidfd that is readable.  Before Linux 6.5 there is no
 * such call, and the pid is all that is known.
 */
static void open_pidfd(int sock, struct access_peer *peer)
{
	socklen_t size = sizeof(peer->pidfd);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERPIDFD, &peer->pidfd, &size) == 0)
		return;
	peer->pidfd = -1;
	if (errno != ENOPROTOOPT || peer->pid <= 0)
		return;
	peer->pidfd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
	peer->pidfd_is_guess = true;
}

int access_peer_read(int client_sock, const struct access_rules *rules, struct access_peer *ret)
{
	struct access_peer peer = ACCESS_PEER_NULL;
	struct ucred cred;
	socklen_t size = sizeof(cred);
	int r;

	if (getsockopt(client_sock, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return -errno;
	if (size != sizeof(cred) || cred.uid == (uid_t)-1)
		return -ENOTCONN;
	peer.pid = cred.pid;
	peer.uid = cred.uid;
	peer.gid = cred.gid;
	r = access_peer_groups(client_sock, &peer.groups, &peer.n_groups);
	if (r < 0)
		return r;
	judge_ids(rules, &peer);
	open_pidfd(client_sock, &peer);
	*ret = peer;
	return 0;
}

void access_peer_deinit(struct access_peer *p)
{
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pidfd = -1;
	free(p->groups);
	p->groups = NULL;
}

/* The four ids of a Uid or Gid line: real, effective, saved, file system. */
static bool scan_ids(const char *text, uint32_t ids[4])
{
	return sscanf(text, "%u %u %u %u", &ids[0], &ids[1], &ids[2], &ids[3]) == 4;
}

/* The last number of a line like "NSpid:\t42\t7". */
static bool scan_last(const char *text, pid_t *ret)
{
	const char *tab = strrchr(text, '\t');
	uint64_t v;

	if (!tab || str_to_u64(tab + 1, 0, INT32_MAX, &v) < 0)
		return false;
	*ret = (pid_t)v;
	return true;
}

/* @param seen  One bit for each of the five lines without which the file makes no sense. */
static bool scan_line(const char *line, struct access_target *t, unsigned *seen)
{
	uint32_t ids[4];

	if (str_starts_with(line, "Name:\t")) {
		str_copy(t->comm, sizeof(t->comm), line + 6);
		*seen |= 1;
	} else if (str_starts_with(line, "State:\t")) {
		t->state = line[7];
	} else if (str_starts_with(line, "Tgid:")) {
		*seen |= 2;
		return scan_last(line, &t->pid);
	} else if (str_starts_with(line, "TracerPid:")) {
		return scan_last(line, &t->tracer_pid);
	} else if (str_starts_with(line, "NSpid:")) {
		return scan_last(line, &t->ns_pid);
	} else if (str_starts_with(line, "Uid:\t")) {
		*seen |= 4;
		if (!scan_ids(line + 5, ids))
			return false;
		memcpy(t->uids, ids, sizeof(ids));
	} else if (str_starts_with(line, "Gid:\t")) {
		*seen |= 8;
		if (!scan_ids(line + 5, ids))
			return false;
		memcpy(t->gids, ids, sizeof(ids));
	} else if (str_starts_with(line, "CapPrm:\t")) {
		*seen |= 16;
		return sscanf(line + 8, "%" SCNx64, &t->permitted) == 1;
	} else if (str_starts_with(line, "CapEff:\t")) {
		return sscanf(line + 8, "%" SCNx64, &t->effective) == 1;
	} else if (str_starts_with(line, "VmSize:")) {
		t->kernel_thread = false;
	}
	return true;
}

int access_status_parse(const char *text, size_t size, struct access_target *ret)
{
	struct access_target t = { .kernel_thread = true };
	const char *end = text + size;
	unsigned seen = 0;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((newline ? newline : end) - text);
		char line[256];

		/* No line that is wanted is so long; Groups and Cpus_allowed may be. */
		if (n < sizeof(line)) {
			memcpy(line, text, n);
			line[n] = '\0';
			if (!scan_line(line, &t, &seen))
				return -EBADMSG;
		}
		text += n + 1;
	}
	if (seen != 31)
		return -EBADMSG;
	if (!t.ns_pid)
		t.ns_pid = t.pid;
	/* A zombie has no VmSize line either, but it is no kernel thread. */
	if (t.state == 'Z' || t.state == 'X')
		t.kernel_thread = false;
	*ret = t;
	return 0;
}

int access_target_read(pid_t pid, struct access_target *ret)
{
	/* The mount option hidepid of /proc hides processes from those who may not trace them. */
	auto_lower bool raised = privileges_raise();
	char path[64];
	auto_free char *text = NULL;
	struct access_target t;
	struct stat st;
	size_t size;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	r = fd_read_file(path, PROC_STATUS_MAX, &text, &size);
	if (r < 0)
		return r == -ENOENT ? -ESRCH : r;
	r = access_status_parse(text, size, &t);
	if (r < 0)
		return r;
	if (t.pid != pid)
		return -ESRCH;
	if (stat(path, &st) < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	/*
	 * Root owns the files in /proc/PID of a process that is not dumpable; the process itself
	 * owns the directory (proc(5); fs/proc/base.c, task_dump_owner()).
	 */
	t.dumpable = st.st_uid == t.uids[1];
	*ret = t;
	return 0;
}

static int open_ns(pid_t pid, const char *kind)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

bool access_is_alive(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };
	int r = pidfd < 0 ? -1 : poll(&p, 1, 0);

	/* What fails for want of memory may work a moment later; nobody is dead for that. */
	return r == 0 || (pidfd >= 0 && r < 0 && poll(&p, 1, 0) == 0);
}

/* @param ret  Number of the namespace of that kind; 0: it cannot be told.  @return whether it is our own. */
static bool is_near(pid_t pid, const char *kind, uint64_t *ret)
{
	char path[64];
	struct stat theirs, ours;

	*ret = 0;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	if (stat(path, &theirs) < 0)
		return false;
	*ret = theirs.st_ino;
	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	return stat(path, &ours) == 0 && theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

/* The owner of the outermost user namespace around the process that is below ours. */
static uid_t owner_of(pid_t pid)
{
	auto_close int ours = open_ns(getpid(), "user");
	auto_close int ns = open_ns(pid, "user");
	uid_t owner = ACCESS_NOBODY;

	for (int depth = 0; ours >= 0 && ns >= 0 && depth < NS_DEPTH_MAX; depth++) {
		int parent = ioctl(ns, NS_GET_PARENT);

		if (parent < 0)
			return ACCESS_NOBODY;
		if (same_file(parent, ours)) {
			close(parent);
			return ioctl(ns, NS_GET_OWNER_UID, &owner) < 0 ? ACCESS_NOBODY : owner;
		}
		close(ns);
		ns = parent;
	}
	return ACCESS_NOBODY;
}

static bool has_ids(const struct access_target *t, uid_t uid)
{
	for (size_t i = 0; i < ARRAY_SIZE(t->uids); i++)
		if (t->uids[i] != uid)
			return false;
	return true;
}

static bool may_trace(uint64_t capabilities)
{
	return capabilities >> CAP_SYS_PTRACE & 1;
}

bool access_peer_is_near(const struct access_peer *p)
{
	return p->known && p->near_user && p->near_pid;
}

/* Administrators and observers live in our namespaces, and root is nobody without CAP_SYS_PTRACE. */
static void restrict_rights(struct access_peer *p)
{
	const bool near = access_peer_is_near(p);

	if (!privileges_may_trace())
		return;
	p->admin = p->admin && near && (p->uid != 0 || may_trace(p->effective));
	p->observer = p->observer && near;
}

void access_peer_set_rights(const struct access_rules *rules, struct access_peer *p)
{
	judge_ids(rules, p);
	restrict_rights(p);
}

void access_peer_check(struct access_peer *p)
{
	p->known = p->known && access_is_alive(p->pidfd);
	restrict_rights(p);
}

static uid_t charge_of(const struct access_peer *p, uid_t owner)
{
	if (!privileges_may_trace())
		return p->uid;
	return !p->known ? ACCESS_NOBODY : p->near_user ? p->uid : owner;
}

void access_peer_look(struct access_peer *p)
{
	auto_lower bool raised = privileges_raise();
	uid_t owner = ACCESS_NOBODY;
	struct access_target self;
	uint64_t pid_ns;

	p->known = p->pid > 0 && access_target_read(p->pid, &self) == 0;
	if (p->known) {
		p->near_user = is_near(p->pid, "user", &p->user_ns);
		p->near_pid = is_near(p->pid, "pid", &pid_ns);
		if (!p->near_user)
			owner = owner_of(p->pid);
		p->permitted = self.permitted;
		p->effective = self.effective;
		/*
		 * A client may have executed a privileged program since it connected.  Anybody can
		 * start such a program, and its capabilities are for its own purposes.  A process
		 * that did that has other uids or is not dumpable.
		 */
		p->is_unchanged = has_ids(&self, p->uid) && self.dumpable;
		/* The socket knows the effective ids alone: a set-user-id program's are its file's. */
		p->has_other_uid = self.uids[0] != p->uid;
		p->has_other_gid = self.gids[0] != p->gid;
	}
	/* The peer is still alive, so the pid was its own while /proc was read. */
	p->known = p->known && access_is_alive(p->pidfd);
	/* A guessed pidfd may be another process's: that one must have the peer's uid, at least. */
	if (p->pidfd_is_guess)
		p->known = p->known && p->near_user && p->near_pid && self.uids[1] == p->uid;
	p->charge = charge_of(p, owner);
	restrict_rights(p);
}

/*
 * Is the target's namespace the peer's own, or one below it?
 * @return how many levels below; -1: it is neither, or that cannot be told.
 */
static int ns_depth(const struct access_peer *peer, pid_t target, const char *kind)
{
	auto_close int above = open_ns(peer->pid, kind);
	auto_close int ns = open_ns(target, kind);

	/* If the peer has ended, its pid may have been reused, and `above` be another process's. */
	if (above < 0 || ns < 0 || !access_is_alive(peer->pidfd))
		return -1;
	for (int depth = 0; depth < NS_DEPTH_MAX; depth++) {
		int parent;

		if (same_file(above, ns))
			return depth;
		parent = ioctl(ns, NS_GET_PARENT);
		if (parent < 0)
			return -1;
		close(ns);
		ns = parent;
	}
	return -1;
}

/*
 * Is @p uid root in the user namespace of the process?
 *
 * The files in /proc of a process that is not dumpable belong to the root user of the user
 * namespace where the process was executed (fs/proc/base.c, task_dump_owner()).  If that root user
 * is the process's own user, the owner of the files does not tell whether the process is dumpable.
 */
static bool is_root_inside(pid_t pid, uid_t uid)
{
	unsigned inside, outside, n;
	auto_free char *text = NULL;
	char path[64];
	size_t size;

	snprintf(path, sizeof(path), "/proc/%d/uid_map", (int)pid);
	if (fd_read_file(path, PROC_MAP_MAX, &text, &size) < 0)
		return true;
	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%u %u %u", &inside, &outside, &n) == 3 && inside == 0 && n &&
		    outside == uid)
			return true;
	}
	return false;
}

/*
 * Can it be told that the user is not the root user of a user namespace above the peer's?  A process
 * that was executed up there and entered the peer's namespace may belong to it and not be dumpable.
 */
static bool is_no_root_above(const struct access_peer *peer, uid_t uid)
{
	auto_close int ours = open_ns(getpid(), "user");
	auto_close int theirs = open_ns(peer->pid, "user");
	auto_close int parent = theirs < 0 ? -1 : ioctl(theirs, NS_GET_PARENT);

	/* A namespace in between may have no process, so nothing shows who its root user is. */
	return peer->near_user || (parent >= 0 && ours >= 0 && access_is_alive(peer->pidfd) &&
				   same_file(parent, ours) && !is_root_inside(getpid(), uid));
}

static bool is_surely_dumpable(const struct access_peer *peer, const struct access_target *t,
			       int ns_depth)
{
	/* As above. */
	return t->dumpable && ns_depth <= 1 && !is_root_inside(t->pid, t->uids[1]) &&
	       !is_root_inside(peer->pid, t->uids[1]) && is_no_root_above(peer, t->uids[1]);
}

static bool has_group_of(const struct access_peer *peer, const struct access_target *t)
{
	return !peer->has_other_gid && t->gids[0] == peer->gid && t->gids[1] == peer->gid && t->gids[2] == peer->gid;
}

/*
 * What the kernel would answer the peer, which has its capabilities in its own user namespace
 * (kernel/ptrace.c, __ptrace_may_access(); security/commoncap.c, cap_ptrace_access_check()).
 */
static enum ipc_verdict judge_by_facts(const struct access_peer *peer, const struct access_target *t,
				       int ns_depth)
{
	if (!t->dumpable)
		return IPC_VERDICT_NOT_DUMPABLE;
	if (ns_depth < 0)
		return IPC_VERDICT_USER_NAMESPACE;
	if (peer->is_unchanged && may_trace(peer->effective) && is_no_root_above(peer, t->uids[1]))
		return IPC_VERDICT_OK;
	if (!is_surely_dumpable(peer, t, ns_depth))
		return IPC_VERDICT_NOT_DUMPABLE;
	if (ns_depth > 0)
		return IPC_VERDICT_USER_NAMESPACE;
	if (!has_group_of(peer, t))
		return IPC_VERDICT_OTHER_GROUP;
	if (t->permitted && (!peer->is_unchanged || t->permitted & ~peer->permitted))
		return IPC_VERDICT_CAPABILITIES;
	return IPC_VERDICT_OK;
}

static int open_target(const struct access_target *t)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d", (int)t->pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

/* Ask the kernel, as the peer's user.  @return as oracle_ask(). */
static int ask(const struct access_peer *peer, const struct access_target *t)
{
	auto_close int proc_fd = open_target(t);

	if (proc_fd < 0)
		return proc_fd;
	return oracle_ask(proc_fd, peer->uid, peer->gid, peer->groups, peer->n_groups);
}

/* Ask the kernel about this process itself, which takes no time. */
static int ask_self(const struct access_target *t)
{
	auto_close int proc_fd = open_target(t);

	return proc_fd < 0 ? proc_fd : oracle_ask_self(proc_fd);
}

int access_ask(const struct access_peer *peer, const struct access_target *target, struct oracle *ret)
{
	auto_lower bool raised = privileges_raise();
	auto_close int proc_fd = open_target(target);

	if (proc_fd < 0)
		return proc_fd;
	return oracle_begin(proc_fd, peer->uid, peer->gid, peer->groups, peer->n_groups, ret);
}

/* The verdict where the kernel cannot be asked: it knows no user like the peer in this namespace. */
static enum ipc_verdict judge_far(const struct access_peer *peer, const struct access_target *t)
{
	return judge_by_facts(peer, t, ns_depth(peer, t->pid, "user"));
}

/*
 * The kernel has refused the peer's user.  The child that asked had no capabilities, but a client
 * may have some.  Where capabilities make no difference, the kernel has a reason of its own, which
 * is not known here.
 */
static enum ipc_verdict judge_refused(const struct access_peer *peer, const struct access_target *t)
{
	int depth = ns_depth(peer, t->pid, "user");
	enum ipc_verdict verdict = judge_by_facts(peer, t, depth);
	bool had_reason = depth > 0 || t->permitted || !has_group_of(peer, t) || !is_surely_dumpable(peer, t, depth);

	return verdict == IPC_VERDICT_OK && !had_reason ? IPC_VERDICT_KERNEL : verdict;
}

/* @param r  What the kernel says, as oracle_ask() returns it. */
static enum ipc_verdict judge_near(const struct access_peer *peer, const struct access_target *t, int r)
{
	switch (r) {
	case 1:
		return IPC_VERDICT_OK;
	case 0:
		return judge_refused(peer, t);
	case -ESRCH:
		return IPC_VERDICT_NO_PROCESS;
	case -EPERM:
		return judge_far(peer, t);
	default:
		log_error("cannot ask the kernel about process %d: %s", (int)t->pid, strerror(-r));
		return IPC_VERDICT_FAILED;
	}
}

static enum ipc_verdict decide_owner(const struct access_peer *peer, const struct access_target *t, int kernel)
{
	if (!has_ids(t, peer->uid) || peer->has_other_uid)
		return IPC_VERDICT_OTHER_USER;
	/* This process sees only its own pid namespace and those below, as a near peer does. */
	if (!peer->near_pid && ns_depth(peer, t->pid, "pid") < 0)
		return IPC_VERDICT_PID_NAMESPACE;
	if (!peer->near_user || peer->has_other_gid)
		return judge_far(peer, t);
	if (kernel == ACCESS_NOT_ASKED && peer->pid == getpid())
		kernel = ask_self(t);
	return kernel == ACCESS_NOT_ASKED ? ACCESS_VERDICT_ASK : judge_near(peer, t, kernel);
}

enum ipc_verdict access_judge(const struct access_peer *peer, const struct access_target *target, int kernel,
			      enum ipc_right *ret_rights)
{
	auto_lower bool raised = privileges_raise();
	enum ipc_verdict verdict;

	if (target->state == 'Z' || target->state == 'X')
		return IPC_VERDICT_NO_PROCESS;
	if (target->kernel_thread)
		return IPC_VERDICT_KERNEL_THREAD;
	if (peer->admin) {
		*ret_rights = IPC_RIGHT_CONTROL;
		return IPC_VERDICT_OK;
	}
	if (!peer->known)
		return IPC_VERDICT_UNKNOWN_PEER;
	verdict = decide_owner(peer, target, kernel);
	if (verdict == IPC_VERDICT_OK) {
		*ret_rights = IPC_RIGHT_CONTROL;
	} else if (peer->observer && verdict != ACCESS_VERDICT_ASK) {
		*ret_rights = IPC_RIGHT_READ;
		verdict = IPC_VERDICT_OK;
	}
	return verdict;
}

enum ipc_verdict access_decide(const struct access_peer *peer, const struct access_target *target,
			       enum ipc_right *ret_rights)
{
	enum ipc_verdict verdict = access_judge(peer, target, ACCESS_NOT_ASKED, ret_rights);

	return verdict == ACCESS_VERDICT_ASK ? access_judge(peer, target, ask(peer, target), ret_rights) : verdict;
}
