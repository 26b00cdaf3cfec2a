/* SPDX-License-Identifier: MIT */
#include "agentd/monitor/rescues.h"

#include <errno.h>
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
	int undo_fd;
	char record[UNDO_RECORD_NAME_MAX];
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
	pid_t pid = added ? fork() : -1;

	if (pid == 0)
		become_rescue(setup, o, *take_undo);
	if (pid < 0) {
		int e = -errno;

		free(added);
		return e;
	}
	*added = (struct rescue){ .next = r->first, .pid = pid, .target = o->target,
				  .undo_fd = TAKE_FD(*take_undo) };
	str_copy(added->record, sizeof(added->record), record);
	r->first = added;
	return 0;
}

bool rescues_owe(const struct rescues *r, pid_t target)
{
	for (const struct rescue *i = r->first; i; i = i->next)
		if (i->target == target && undo_record_owes(i->undo_fd))
			return true;
	return false;
}

static void free_rescue(const char *records, struct rescue *i)
{
	undo_record_remove(records, i->record);
	if (i->undo_fd >= 0)
		close(i->undo_fd);
	free(i);
}

bool rescues_reaped(struct rescues *r, const char *records, pid_t pid, int wait_status)
{
	struct rescue **link = &r->first, *found;
	bool owed;

	while (*link && (*link)->pid != pid)
		link = &(*link)->next;
	found = *link;
	if (!found)
		return false;
	*link = found->next;
	owed = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == IPC_EXIT_OWED;
	/* One that did not come to its end, or to its beginning, says nothing. */
	if (wait_status && !owed)
		owed = undo_record_owes(found->undo_fd);
	free_rescue(records, found);
	return owed;
}

void rescues_deinit(struct rescues *r, const char *records)
{
	while (r->first) {
		struct rescue *i = r->first;

		r->first = i->next;
		/* Its process may be killed with us: the next start finds what is owed then. */
		if (undo_record_owes(i->undo_fd))
			i->record[0] = '\0';
		free_rescue(records, i);
	}
}
