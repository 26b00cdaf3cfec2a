/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/rescues.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/ipc/child.h"
#include "agentd/ipc/undo_record.h"
#include "base/cleanup.h"
#include "base/str.h"

struct rescue {
	struct rescue *next;
	pid_t pid, target;
	struct rescue_left left;
};

static _Noreturn void become_rescue(const struct rescue_setup *setup, const struct orphan *o, int undo)
{
	static const int to[] = { IPC_FD_TARGET, IPC_FD_UNDO };
	const int from[] = { o->pidfd, undo };
	char pid[12], session[12], owner[12];
	const char *argv[] = { setup->program, "--rescue", pid, "--session", session, "--owner", owner,
			       "--records", setup->records, "--kfd", setup->config->kfd_device,
			       "--kfd-sysfs", setup->config->kfd_sysfs, "--cuda-library", setup->config->cuda_library,
			       NULL, NULL, NULL, NULL };
	size_t n = 15;

	snprintf(pid, sizeof(pid), "%d", (int)o->target);
	snprintf(session, sizeof(session), "%u", o->session);
	snprintf(owner, sizeof(owner), "%u", o->owner);
	if (o->stuck)
		argv[n++] = "--stuck";
	if (o->ended)
		argv[n++] = "--ended";
	if (setup->verbose)
		argv[n++] = "--verbose";
	child_place_fds(from, to, ARRAY_SIZE(to));
	child_exec(setup->program, argv, 0);
}

int rescues_start(struct rescues *r, const struct rescue_setup *setup, const struct orphan *o, int *take_undo,
		  const char *record)
{
	struct rescue *added = malloc(sizeof(*added));
	int pidfd = fcntl(o->pidfd, F_DUPFD_CLOEXEC, 0);
	pid_t pid = added ? fork() : -1;

	if (pid == 0)
		become_rescue(setup, o, *take_undo);
	if (pid < 0) {
		int e = -errno;

		free(added);
		if (pidfd >= 0)
			close(pidfd);
		return e;
	}
	*added = (struct rescue){ .next = r->first, .pid = pid, .target = o->target,
				  .left = { .target = o->target, .pidfd = pidfd, .undo_fd = TAKE_FD(*take_undo),
					    .owner = o->owner, .is_repair = o->is_repair } };
	str_copy(added->left.record, sizeof(added->left.record), record);
	r->first = added;
	return 0;
}

bool rescues_owe(const struct rescues *r, pid_t target)
{
	for (const struct rescue *i = r->first; i; i = i->next)
		if (i->target == target &&
		    (undo_record_owes(i->left.undo_fd) || undo_record_is_suspended(i->left.undo_fd)))
			return true;
	return false;
}

static void free_rescue(const char *records, struct rescue *i)
{
	undo_record_drop(records, i->left.record, i->left.undo_fd);
	if (i->left.undo_fd >= 0)
		close(i->left.undo_fd);
	if (i->left.pidfd >= 0)
		close(i->left.pidfd);
	free(i);
}

bool rescues_reaped(struct rescues *r, const char *records, pid_t pid, int wait_status, struct rescue_left *ret_left)
{
	struct rescue **link = &r->first, *found;
	bool owed;

	*ret_left = (struct rescue_left){ .target = 0 };
	while (*link && (*link)->pid != pid)
		link = &(*link)->next;
	found = *link;
	if (!found)
		return false;
	*link = found->next;
	owed = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == IPC_EXIT_OWED;
	/* One that did not come to its end, or to its beginning, says nothing. */
	if (wait_status && !owed)
		owed = undo_record_owes(found->left.undo_fd);
	if (!owed && undo_record_is_suspended(found->left.undo_fd)) {
		*ret_left = found->left;
		free(found);
		return false;
	}
	free_rescue(records, found);
	return owed;
}

void rescues_deinit(struct rescues *r, const char *records)
{
	while (r->first) {
		struct rescue *i = r->first;

		r->first = i->next;
		/* Its process may be killed with us: the next start finds what is owed then. */
		if (undo_record_owes(i->left.undo_fd))
			i->left.record[0] = '\0';
		free_rescue(records, i);
	}
}
