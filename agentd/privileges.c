/* SPDX-License-Identifier: MIT */
#include "agentd/privileges.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Most capabilities that any process of the agent keeps. */
#define KEPT_MAX 5

static void free_cap(cap_t *c)
{
	if (*c)
		cap_free(*c);
}

/* Keep those of @p keep that the process has, also in the bounding set. */
static int keep_only(const cap_value_t *keep, size_t n_keep)
{
	auto_call(free_cap) cap_t have = cap_get_proc(), want = cap_init();
	cap_value_t kept[KEPT_MAX];
	int n = 0;

	if (!have || !want)
		return -errno;
	for (size_t i = 0; i < n_keep; i++) {
		cap_flag_value_t on = CAP_CLEAR;

		/* A unit file may have taken some away already; the kernel would refuse them. */
		if (cap_get_flag(have, keep[i], CAP_PERMITTED, &on) == 0 && on == CAP_SET)
			kept[n++] = keep[i];
	}
	for (cap_value_t c = 0; cap_get_bound(c) >= 0; c++) {
		bool wanted = false;

		for (int i = 0; i < n; i++)
			wanted |= kept[i] == c;
		/* The call needs CAP_SETPCAP; under a unit the bounding set is small already. */
		if (!wanted && cap_get_bound(c) == 1 && cap_drop_bound(c) < 0 && errno != EPERM)
			return -errno;
	}
	if (n && (cap_set_flag(want, CAP_PERMITTED, n, kept, CAP_SET) < 0 ||
		  cap_set_flag(want, CAP_EFFECTIVE, n, kept, CAP_SET) < 0))
		return -errno;
	return cap_set_proc(want) < 0 ? -errno : 0;
}

int privileges_keep_attach(void)
{
	static const cap_value_t keep[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_SETUID,
					    CAP_SETGID, CAP_KILL };

	return keep_only(keep, ARRAY_SIZE(keep));
}

/* No program that is executed gives new privileges; a system-call filter needs that, too. */
static int no_new_privileges(void)
{
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

#ifdef __SANITIZE_ADDRESS__
/* The sanitizer's leak check at exit attaches to its own process. */
#define DUMPABLE 1
#else
#define DUMPABLE 0
#endif

int privileges_hide(void)
{
	return prctl(PR_SET_DUMPABLE, DUMPABLE) < 0 ? -errno : 0;
}

/* privileges_lower() of this process, or of the one that forked it; an exec by root raises all. */
static bool is_lowered;

/*
 * Is it effective, or would it be after privileges_raise()?  Asked without the library, which needs memory: a process
 * that has rights must not take itself for one that has none.
 */
static bool has(cap_value_t cap)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &head, data) < 0)
		return false;
	return (is_lowered ? data[CAP_TO_INDEX(cap)].permitted : data[CAP_TO_INDEX(cap)].effective) & CAP_TO_MASK(cap);
}

bool privileges_may_trace(void)
{
	return has(CAP_SYS_PTRACE);
}

bool privileges_may_become(void)
{
	return has(CAP_SETUID);
}

int privileges_lower(void)
{
	auto_call(free_cap) cap_t have = cap_get_proc();

	/* Said before it is done: where it fails, the end of the next block that raises tries again. */
	is_lowered = true;
	return !have || cap_clear_flag(have, CAP_EFFECTIVE) < 0 || cap_set_proc(have) < 0 ? -errno : 0;
}

bool privileges_raise(void)
{
	auto_call(free_cap) cap_t have = NULL;

	if (!is_lowered)
		return false;
	is_lowered = false;
	have = cap_get_proc();
	for (cap_value_t c = 0; have && c <= CAP_LAST_CAP; c++) {
		cap_flag_value_t on = CAP_CLEAR;

		if (cap_get_flag(have, c, CAP_PERMITTED, &on) == 0 && on == CAP_SET)
			cap_set_flag(have, CAP_EFFECTIVE, 1, &c, CAP_SET);
	}
	/* Raising what is permitted is never refused; without memory the call that follows is. */
	(void)(have && cap_set_proc(have));
	return true;
}

void privileges_lower_again(const bool *raised)
{
	if (*raised)
		privileges_lower();
}

int privileges_kill(pid_t pid, int sig)
{
	auto_lower bool raised = privileges_raise();

	return kill(pid, sig);
}

/* @param keep  Capabilities that the process has afterwards. */
static int become(uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups, cap_t keep)
{
	uid_t ruid, euid, suid;

	privileges_raise();
	if (has(CAP_SETUID)) {
		/* Without this the kernel drops the permitted set with the ids; `keep` cuts it. */
		if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
			return -errno;
		/* A change of ids hides the process already, but uid 0 to uid 0 is no change. */
		if (setgroups(n_groups, groups) < 0 || setresgid(gid, gid, gid) < 0 ||
		    setresuid(uid, uid, uid) < 0 || privileges_hide() < 0)
			return -errno;
	}
	if (getresuid(&ruid, &euid, &suid) < 0)
		return -errno;
	if (ruid != uid || euid != uid || suid != uid)
		return -EPERM;
	if (cap_set_proc(keep) < 0)
		return -errno;
	return no_new_privileges();
}

int privileges_become(uid_t uid, gid_t gid)
{
	auto_call(free_cap) cap_t none = cap_init();

	return none ? become(uid, gid, NULL, 0, none) : -errno;
}

int privileges_give_up(void)
{
	auto_call(free_cap) cap_t none = cap_init();

	return !none || cap_set_proc(none) < 0 ? -errno : no_new_privileges();
}

int privileges_become_login(uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups)
{
	auto_call(free_cap) cap_t none = cap_init();

	return none ? become(uid, gid, groups, n_groups, none) : -errno;
}

int privileges_keep_kill(void)
{
	static const cap_value_t kill[] = { CAP_KILL };
	auto_call(free_cap) cap_t keep = cap_init();

	if (!keep)
		return -errno;
	privileges_raise();
	if (has(CAP_KILL) && (cap_set_flag(keep, CAP_PERMITTED, 1, kill, CAP_SET) < 0 ||
				       cap_set_flag(keep, CAP_EFFECTIVE, 1, kill, CAP_SET) < 0))
		return -errno;
	if (cap_set_proc(keep) < 0)
		return -errno;
	return no_new_privileges();
}

int privileges_keep_judge(void)
{
	static const cap_value_t keep[] = { CAP_SYS_PTRACE, CAP_SETUID, CAP_SETGID, CAP_KILL };
	int r = keep_only(keep, ARRAY_SIZE(keep));

	return r < 0 ? r : no_new_privileges();
}

int privileges_keep_hooks(void)
{
	static const cap_value_t keep[] = { CAP_DAC_READ_SEARCH, CAP_SETUID, CAP_SETGID, CAP_KILL };
	int r = keep_only(keep, ARRAY_SIZE(keep));

	return r < 0 ? r : no_new_privileges();
}

/* CAP_SYS_PTRACE alone, if this process has it.  @return NULL and errno on failure. */
static cap_t trace_alone(cap_flag_value_t effective)
{
	static const cap_value_t trace[] = { CAP_SYS_PTRACE };
	auto_call(free_cap) cap_t keep = cap_init();

	if (keep && has(CAP_SYS_PTRACE) &&
	    (cap_set_flag(keep, CAP_PERMITTED, 1, trace, CAP_SET) < 0 ||
	     cap_set_flag(keep, CAP_EFFECTIVE, 1, trace, effective) < 0))
		return NULL;
	return TAKE_PTR(keep);
}

int privileges_become_tracer(uid_t uid, gid_t gid)
{
	auto_call(free_cap) cap_t keep = trace_alone(CAP_SET);

	return keep ? become(uid, gid, NULL, 0, keep) : -errno;
}

int privileges_lay_down_tracer(uid_t uid, gid_t gid)
{
	auto_call(free_cap) cap_t keep = trace_alone(CAP_CLEAR);

	return keep ? become(uid, gid, NULL, 0, keep) : -errno;
}

int privileges_keep_trace(uid_t files_uid, gid_t files_gid)
{
	auto_call(free_cap) cap_t keep = trace_alone(CAP_SET);

	if (!keep || (has(CAP_SETGID) && setgroups(0, NULL) < 0))
		return -errno;
	setfsgid(files_gid);
	setfsuid(files_uid);
	/* Neither says whether it did so, except by what it finds the next time. */
	if ((uid_t)setfsuid((uid_t)-1) != files_uid || (gid_t)setfsgid((gid_t)-1) != files_gid)
		return -EPERM;
	return cap_set_proc(keep) < 0 ? -errno : no_new_privileges();
}

int privileges_take_up_tracer(void)
{
	static const cap_value_t trace[] = { CAP_SYS_PTRACE };
	auto_call(free_cap) cap_t have = cap_get_proc();
	cap_flag_value_t on = CAP_CLEAR;

	if (!have || cap_get_flag(have, trace[0], CAP_PERMITTED, &on) < 0)
		return -errno;
	if (on != CAP_SET)
		return -EPERM;
	if (cap_set_flag(have, CAP_EFFECTIVE, 1, trace, CAP_SET) < 0)
		return -errno;
	return cap_set_proc(have) < 0 ? -errno : 0;
}

int privileges_check_peer(int sock)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return -errno;
	return peer.uid == 0 || peer.uid == geteuid() ? 0 : -EACCES;
}
