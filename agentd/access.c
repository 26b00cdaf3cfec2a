/* SPDX-License-Identifier: MIT */
#include "agentd/access.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5, include/uapi/asm-generic/socket.h */
#endif

#define PROC_STATUS_MAX (64 * 1024)
#define USER_NS_DEPTH_MAX 33 /* the kernel's own limit is 32 levels */
#define GROUPS_MAX 65536

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

static int judge_groups(int sock, const struct access_rules *rules, struct access_peer *peer)
{
	auto_free gid_t *groups = NULL;
	size_t n;
	int r = access_peer_groups(sock, &groups, &n);

	if (r < 0)
		return r;
	for (size_t i = 0; i <= n; i++) {
		gid_t gid = i < n ? groups[i] : peer->gid;

		if (gid == ACCESS_NO_GROUP)
			continue;
		peer->admin |= gid == rules->admin_gid;
		peer->observer |= gid == rules->observer_gid;
	}
	return 0;
}

int access_peer_read(int client_sock, const struct access_rules *rules, struct access_peer *ret)
{
	struct access_peer peer = { .pidfd = -1 };
	struct ucred cred;
	socklen_t size = sizeof(cred);
	int r, pidfd;

	if (getsockopt(client_sock, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return -errno;
	if (size != sizeof(cred) || cred.uid == (uid_t)-1)
		return -ENOTCONN;
	peer.pid = cred.pid;
	peer.uid = cred.uid;
	peer.gid = cred.gid;
	peer.admin = cred.uid == 0;
	r = judge_groups(client_sock, rules, &peer);
	if (r < 0)
		return r;
	size = sizeof(pidfd);
	if (getsockopt(client_sock, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &size) == 0)
		peer.pidfd = pidfd;
	*ret = peer;
	return 0;
}

void access_peer_deinit(struct access_peer *p)
{
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pidfd = -1;
}

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

		/* Long lines (Groups, Cpus_allowed) are not ours. */
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
	/* A zombie has no memory either, but is no kernel thread. */
	if (t.state == 'Z' || t.state == 'X')
		t.kernel_thread = false;
	*ret = t;
	return 0;
}

int access_target_read(pid_t pid, struct access_target *ret)
{
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
	 * procfs gives the files of a process that is not dumpable to root, but not its directory
	 * (proc(5); fs/proc/base.c, task_dump_owner()).
	 */
	t.dumpable = st.st_uid == t.uids[1];
	*ret = t;
	return 0;
}

static int open_user_ns(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool same_file(int a, int b)
{
	struct stat sa, sb;

	return fstat(a, &sa) == 0 && fstat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
	       sa.st_ino == sb.st_ino;
}

static bool pidfd_is_dead(int pidfd)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return pidfd >= 0 && poll(&p, 1, 0) > 0;
}

bool access_peer_is_near(const struct access_peer *p)
{
	auto_close int theirs = open_user_ns(p->pid);
	auto_close int ours = open_user_ns(getpid());

	/* Looked at while the peer lived: the number was not somebody else's. */
	return theirs >= 0 && ours >= 0 && same_file(theirs, ours) && !pidfd_is_dead(p->pidfd);
}

/* Is the target's user namespace the peer's own or one below it? */
static bool user_ns_reachable(const struct access_peer *peer, pid_t target)
{
	auto_close int above = open_user_ns(peer->pid);
	auto_close int ns = open_user_ns(target);

	/* With the pid reused meanwhile, `above` could be somebody else's. */
	if (above < 0 || ns < 0 || pidfd_is_dead(peer->pidfd))
		return false;
	for (int depth = 0; depth < USER_NS_DEPTH_MAX; depth++) {
		int parent;

		if (same_file(above, ns))
			return true;
		parent = ioctl(ns, NS_GET_PARENT);
		if (parent < 0)
			return false;
		close(ns);
		ns = parent;
	}
	return false;
}

static bool owns(const struct access_peer *peer, const struct access_target *t)
{
	for (size_t i = 0; i < ARRAY_SIZE(t->uids); i++)
		if (t->uids[i] != peer->uid)
			return false;
	return true;
}

/*
 * As ptrace(2) has it, so that a service's user cannot look into what only the service may see.  A
 * client that has become a privileged program since, which anybody can start, has them for that
 * program's purposes: such a process has other uids or is not dumpable.
 */
static bool has_all_capabilities_of(const struct access_peer *peer, const struct access_target *t)
{
	struct access_target self;

	if (!t->permitted)
		return true;
	return access_target_read(peer->pid, &self) == 0 && !pidfd_is_dead(peer->pidfd) &&
	       owns(peer, &self) && self.dumpable && !(t->permitted & ~self.permitted);
}

static enum ipc_verdict decide_owner(const struct access_peer *peer, const struct access_target *t)
{
	if (!owns(peer, t))
		return IPC_VERDICT_OTHER_USER;
	if (!t->dumpable)
		return IPC_VERDICT_NOT_DUMPABLE;
	if (!user_ns_reachable(peer, t->pid))
		return IPC_VERDICT_USER_NAMESPACE;
	if (!has_all_capabilities_of(peer, t))
		return IPC_VERDICT_CAPABILITIES;
	return IPC_VERDICT_OK;
}

enum ipc_verdict access_decide(const struct access_peer *peer, const struct access_target *target,
			       enum ipc_right *ret_rights)
{
	enum ipc_verdict verdict;

	if (target->state == 'Z' || target->state == 'X')
		return IPC_VERDICT_NO_PROCESS;
	if (target->kernel_thread)
		return IPC_VERDICT_KERNEL_THREAD;
	if (peer->admin) {
		*ret_rights = IPC_RIGHT_CONTROL;
		return IPC_VERDICT_OK;
	}
	verdict = decide_owner(peer, target);
	if (verdict == IPC_VERDICT_OK) {
		*ret_rights = IPC_RIGHT_CONTROL;
	} else if (peer->observer) {
		*ret_rights = IPC_RIGHT_READ;
		verdict = IPC_VERDICT_OK;
	}
	return verdict;
}
