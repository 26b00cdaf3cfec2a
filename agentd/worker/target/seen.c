/* SPDX-License-Identifier: MIT */
#include "agentd/worker/target/seen.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/worker/process/facts.h"
#include "agentd/worker/target/target.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"

/* No look leaves more: some hundred KiB. */
#define ENTRIES_MAX 4096u

void seen_init(struct seen *s, uid_t own)
{
	*s = (struct seen){ .own = own, .left = SEEN_LOOK_MAX };
}

void seen_deinit(struct seen *s)
{
	free(s->known);
	free(s->list);
}

void seen_learn(struct seen *s, const void *data, size_t size)
{
	const size_t n = size / sizeof(*s->known);

	free(s->known);
	s->known = n && n <= ENTRIES_MAX ? malloc(n * sizeof(*s->known)) : NULL;
	s->n_known = s->known ? n : 0;
	if (s->known)
		memcpy(s->known, data, n * sizeof(*s->known));
}

/* VmLib of /proc/PID/status grows when a library is loaded, without a look at what is mapped. */
static int read_lib(pid_t pid, uint64_t *ret)
{
	auto_free char *text = NULL;
	const char *line;
	char path[40];
	size_t size;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	r = fd_read_file(path, 64 << 10, &text, &size);
	if (r < 0)
		return r;
	line = strstr(text, "\nVmLib:");
	if (!line)
		return -ESRCH;
	*ret = strtoull(line + strlen("\nVmLib:"), NULL, 10);
	return 0;
}

/*
 * The file itself is not looked at: its file system may never answer.  The name is enough for a number
 * (FNV-1a), because a program could only take itself for what it was.
 */
static int read_exe(pid_t pid, uint64_t *ret)
{
	char path[40], exe[PATH_MAX];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	n = readlink(path, exe, sizeof(exe));
	if (n < 0)
		return -errno;
	*ret = UINT64_C(0xcbf29ce484222325);
	for (ssize_t i = 0; i < n; i++)
		*ret = (*ret ^ (unsigned char)exe[i]) * UINT64_C(0x100000001b3);
	return 0;
}

static int identify(pid_t pid, struct ipc_looked *ret)
{
	int r;

	*ret = (struct ipc_looked){ .pid = (uint32_t)pid };
	r = read_exe(pid, &ret->exe);
	if (r == 0)
		r = process_facts_start(pid, &ret->start_ticks);
	return r < 0 ? r : read_lib(pid, &ret->lib_kib);
}

static bool is_same(const struct ipc_looked *a, const struct ipc_looked *b)
{
	return a->start_ticks == b->start_ticks && a->exe == b->exe && a->lib_kib == b->lib_kib;
}

/* Without memory the next look takes longer. */
static void add(struct seen *s, const struct ipc_looked *e)
{
	const size_t capacity = s->capacity ? 2 * s->capacity : 64;
	struct ipc_looked *grown;

	if (s->n == s->capacity) {
		grown = s->n < ENTRIES_MAX ? realloc(s->list, capacity * sizeof(*grown)) : NULL;
		if (!grown)
			return;
		s->list = grown;
		s->capacity = capacity;
	}
	s->list[s->n++] = *e;
}

size_t seen_allows(const struct seen *s, uid_t uid)
{
	if (uid == s->own)
		return SIZE_MAX;
	return s->left < SEEN_OTHERS_MAX - SEEN_FREE ? SEEN_FREE + (size_t)s->left : SEEN_OTHERS_MAX;
}

bool seen_find(struct seen *s, pid_t pid, enum seen_what *ret)
{
	const uint64_t now_ns = clock_now_ns();
	struct ipc_looked now;

	for (size_t i = 0; i < s->n_known; i++) {
		const struct ipc_looked *e = &s->known[i];

		if (e->pid != (uint32_t)pid)
			continue;
		if (e->at_ns > now_ns || (now_ns - e->at_ns) / 1000000 >= SEEN_KEEP_MS || e->what > SEEN_CUT ||
		    identify(pid, &now) < 0 || !is_same(e, &now))
			return false;
		add(s, e);
		*ret = (enum seen_what)e->what;
		s->n_cut += e->what == SEEN_CUT;
		return true;
	}
	return false;
}

bool seen_may_ask(const struct seen *s, uid_t uid)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_lost; i++)
		n += s->lost[i].uid == uid;
	return uid == s->own || n < SEEN_LOST_MAX;
}

void seen_lose(struct seen *s, pid_t pid, uid_t uid, bool asked)
{
	if (asked && s->n_lost < ARRAY_SIZE(s->lost))
		s->lost[s->n_lost++] = (struct seen_lost){ pid, uid };
	else
		s->n_unasked++;
}

void seen_note(struct seen *s, pid_t pid, uid_t uid, size_t bytes, enum seen_what what)
{
	const uint64_t more = bytes > SEEN_FREE ? bytes - SEEN_FREE : 0;
	struct ipc_looked e;

	s->n_cut += what == SEEN_CUT;
	if (uid != s->own)
		s->left -= more < s->left ? more : s->left;
	if ((!more && what != SEEN_CUT) || identify(pid, &e) < 0)
		return;
	e.what = what;
	e.at_ns = clock_now_ns();
	add(s, &e);
}
