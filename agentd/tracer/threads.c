/* SPDX-License-Identifier: MIT */
#include "agentd/tracer/tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/access.h"
#include "base/clock.h"

/* A worker that has stopped, or does as it likes, keeps no thread for longer than this. */
#define HOLD_MS 20000
#define STATUS_MAX 16384

/* ------------------------------------------------------------------ the one process ---------- */

ssize_t tracer_read_text(const char *name, char *buf, size_t size)
{
	int fd = openat(IPC_FD_TRACER_PROC, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : read(fd, buf, size - 1);

	if (fd >= 0 && n < 0)
		n = -errno;
	if (fd >= 0)
		close(fd);
	if (n >= 0)
		buf[n] = '\0';
	return n;
}

bool tracer_is_unchanged(const struct tracer *t)
{
	char text[STATUS_MAX], byte;
	ssize_t n = tracer_read_text("status", text, sizeof(text));
	struct access_target now;
	struct stat st;

	if (n <= 0 || access_status_parse(text, (size_t)n, &now) < 0 || now.pid != t->target.pid ||
	    fstatat(IPC_FD_TRACER_PROC, "status", &st, 0) < 0)
		return false;
	return (st.st_uid == now.uids[1]) == (t->target.dumpable != 0) &&
	       memcmp(now.uids, t->target.uids, sizeof(now.uids)) == 0 &&
	       pread(IPC_FD_TRACER_MAPS, &byte, 1, 0) == 1 && access_is_alive(IPC_FD_TRACER_PIDFD);
}

bool tracer_has_start_time(uint64_t want)
{
	char text[4096];
	unsigned long long start;
	const char *paren;

	if (tracer_read_text("stat", text, sizeof(text)) <= 0)
		return false;
	/* The name in field 2 may contain anything, parentheses included: proc(5). */
	paren = strrchr(text, ')');
	return paren && sscanf(paren + 1, " %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
			       &start) == 1 && start == want;
}

/* ------------------------------------------------------------------ its threads -------------- */

size_t tracer_find(const struct tracer *t, pid_t tid)
{
	size_t i = 0;

	while (i < t->n_held && t->held[i] != tid)
		i++;
	return i;
}

void tracer_forget(struct tracer *t, size_t i)
{
	t->held[i] = t->held[--t->n_held];
}

struct cudbgshim_stop tracer_look_at(struct tracer *t, pid_t tid)
{
	struct cudbgshim_stop stop = TRACER_SYS->look(NULL, tid);

	if (stop.kind == CUDBGSHIM_STOP_EXEC) {
		TRACER_SYS->go(NULL, tid, CUDBGSHIM_GO_FREE, 0);
		t->is_over = true;
	}
	return stop;
}

struct cudbgshim_stop tracer_look_at_all(struct tracer *t, pid_t tid)
{
	struct cudbgshim_stop wanted = { CUDBGSHIM_STOP_GONE, 0 }, stop = { CUDBGSHIM_STOP_GONE, 0 };

	for (size_t i = 0; i < t->n_held && !t->is_over;) {
		stop = tracer_look_at(t, t->held[i]);
		if (t->held[i] == tid)
			wanted = stop;
		if (stop.kind == CUDBGSHIM_STOP_GONE)
			tracer_forget(t, i);
		else
			i++;
	}
	if (!t->is_over && tracer_find(t, t->target.pid) == t->n_held)
		stop = tracer_look_at(t, t->target.pid);
	return t->is_over ? stop : wanted;
}

int tracer_seize(struct tracer *t, pid_t tid)
{
	char path[32];
	struct stat st;
	int r;

	if (tracer_find(t, tid) < t->n_held)
		return -EPERM;
	if (t->n_held == TRACER_THREADS_MAX)
		return -ENOSPC;
	snprintf(path, sizeof(path), "task/%d", (int)tid);
	if (fstatat(IPC_FD_TRACER_PROC, path, &st, 0) < 0)
		return -ESRCH;
	r = TRACER_SYS->seize(NULL, tid);
	if (r < 0)
		return r;
	if (!t->n_held)
		t->hold_until = clock_deadline_ms(HOLD_MS);
	t->held[t->n_held++] = tid;
	/* From here on the process cannot change unseen.  If it has, our end lets the thread go. */
	t->is_over = !tracer_is_unchanged(t);
	return t->is_over ? -ESTALE : 0;
}
