/* SPDX-License-Identifier: MIT */
/* The processes of the machine that have the driver's library, seen without touching them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/worker/cuda/cuda.h"
#include "base/cleanup.h"
#include "base/out.h"
#include "base/str.h"
#include "base/vec.h"

#define PROCESSES_MAX 65536u

/* ------------------------------------------------------------------ in which order ----------- */

struct candidate {
	pid_t pid;
	uid_t uid;
	uint32_t round; /* How many of its user come before. */
	bool is_other;	/* Not of the client's user. */
	enum seen_what what;
};

static int by_user(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->uid != y->uid ? (x->uid > y->uid) - (x->uid < y->uid) : (x->pid > y->pid) - (x->pid < y->pid);
}

/* Those of the client, then one of each other user, then the next of each. */
static int by_turn(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->is_other != y->is_other)
		return x->is_other - y->is_other;
	return x->round != y->round ? (x->round > y->round) - (x->round < y->round) : by_user(a, b);
}

static void sort(struct candidate *list, size_t n, uid_t own)
{
	qsort(list, n, sizeof(*list), by_user);
	for (size_t i = 0; i < n; i++) {
		list[i].is_other = list[i].uid != own;
		list[i].round = i && list[i].uid == list[i - 1].uid ? list[i - 1].round + 1 : 0;
	}
	qsort(list, n, sizeof(*list), by_turn);
}

static int list_candidates(uid_t own, struct candidate **ret, size_t *ret_n)
{
	DIR *dir = opendir("/proc");
	struct candidate *list = NULL;
	size_t n = 0, capacity = 0;
	struct dirent *e;
	struct stat st;
	uint64_t pid;

	if (!dir)
		return -errno;
	while ((e = readdir(dir)) && n < PROCESSES_MAX) {
		if (str_to_u64(e->d_name, 1, INT32_MAX, &pid) < 0 || (pid_t)pid == getpid() ||
		    fstatat(dirfd(dir), e->d_name, &st, 0) < 0)
			continue;
		if (vec_reserve(&list, n, 1, &capacity, sizeof(*list)) < 0)
			break;
		list[n++] = (struct candidate){ .pid = (pid_t)pid, .uid = st.st_uid };
	}
	closedir(dir);
	if (n)
		sort(list, n, own);
	*ret = list;
	*ret_n = n;
	return 0;
}

/* ------------------------------------------------------------------ is it one ---------------- */

static int open_maps(pid_t pid)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Go on reading until there is so much.  @return whether that is all; -errno. */
static int read_some_maps(int fd, size_t most, struct out *ret)
{
	char buf[16384];
	ssize_t n = 1;

	while (n > 0 && ret->size < most) {
		n = read(fd, buf, sizeof(buf));
		if (n > 0)
			out_bytes(ret, buf, (size_t)n);
	}
	return n < 0 ? -errno : out_error(ret) ? out_error(ret) : n == 0;
}

/* A look at all of them. */
struct looking {
	struct seen *seen;
	struct candidate *list;
};

/* Whose process it is: /proc/PID is root's where it may not be dumped, and the owner's of a set-user-id program. */
static uid_t user_of(pid_t pid)
{
	struct access_target facts;

	return access_target_read(pid, &facts) < 0 ? (uid_t)-1 : facts.uids[0];
}

static void lost(void *ctx, size_t i, bool asked)
{
	const struct looking *l = ctx;
	struct candidate *c = &l->list[i];

	/* What it has open is told without a look at its memory. */
	c->what = cuda_uses_nodes(c->pid) ? SEEN_YES : SEEN_NO;
	seen_lose(l->seen, c->pid, user_of(c->pid), asked);
}

/*
 * Read what it has mapped.  Before Linux 6.17 that waits for the lock of its memory.
 * @return whether that is all; -errno; -ESTALE: another thread has gone on, and nothing may be touched.
 */
static int read_maps(struct seen *s, struct relay_turn *turn, pid_t pid, uid_t *uid, struct out *ret)
{
	auto_close int fd = -1;
	size_t most;
	int r;

	relay_leave(turn);
	fd = open_maps(pid);
	r = fd < 0 ? -errno : read_some_maps(fd, SEEN_FREE, ret);
	if (!relay_enter(turn))
		return -ESTALE;
	if (r)
		return r;
	*uid = user_of(pid);
	most = seen_allows(s, *uid);
	relay_leave(turn);
	r = read_some_maps(fd, most, ret);
	return relay_enter(turn) ? r : -ESTALE;
}

static void look_at(void *ctx, struct relay_turn *turn, size_t i)
{
	const struct looking *l = ctx;
	struct candidate *c = &l->list[i];
	struct cudbgshim_library library;
	auto_out struct out maps = { 0 };
	uid_t uid = c->uid;
	int r;

	if (seen_find(l->seen, c->pid, &c->what))
		return;
	if (l->seen->n_lost && !seen_may_ask(l->seen, user_of(c->pid))) {
		lost(ctx, i, false);
		return;
	}
	out_init(&maps, CUDBGSHIM_MAPS_MAX);
	r = read_maps(l->seen, turn, c->pid, &uid, &maps);
	if (r < 0)
		return;
	/* The last line may be cut. */
	while (!r && maps.size && maps.data[maps.size - 1] != '\n')
		maps.size--;
	c->what = maps.size && cudbgshim_find_libcuda(maps.data, maps.size, 0, &library) == 0 ? SEEN_YES :
		  r ? SEEN_NO : SEEN_CUT;
	seen_note(l->seen, c->pid, uid, maps.size, c->what);
}

/* Find the numbers behind /dev/nvidia in the open descriptors; nvidiactl and others have none. */
static void find_devices(struct rpc_arena *a, struct target_user *u)
{
	char path[32], link[64];
	struct dirent *e;
	uint64_t seen = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)u->pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		ssize_t n = readlinkat(dirfd(dir), e->d_name, link, sizeof(link) - 1);
		uint64_t number;

		if (n <= 0)
			continue;
		link[n] = '\0';
		if (!strncmp(link, "/dev/nvidia", 11) && str_to_u64(link + 11, 0, 63, &number) == 0)
			seen |= UINT64_C(1) << number;
	}
	if (dir)
		closedir(dir);
	u->gpu_ids = rpc_arena_array(a, 64, sizeof(*u->gpu_ids));
	for (uint32_t i = 0; u->gpu_ids && i < 64; i++)
		if (seen >> i & 1)
			u->gpu_ids[u->n_gpu_ids++] = i;
}

int cuda_users(const struct worker_options *o, struct seen *seen, struct rpc_arena *a, struct target_user **ret,
	       size_t *ret_n, struct agent_err *err)
{
	auto_free struct candidate *list = NULL;
	struct target_user *users, u;
	struct relay_work work = { .look = look_at, .lost = lost };
	size_t n_list = 0, n = 0;
	int r = list_candidates(seen->own, &list, &n_list);

	if (r < 0)
		return agent_err_set(err, RPC_ERROR_FAILED, -r, "open /proc", NULL,
				     "cannot list the processes");
	work.ctx = &(struct looking){ seen, list };
	relay_run(&seen->budget, &work, n_list);
	/* Few of them use a GPU: those are moved to the front, and then have their place in the arena. */
	for (size_t i = 0; i < n_list; i++)
		if (list[i].what == SEEN_YES)
			list[n++] = list[i];
	if (!n && !cuda_has_nodes())
		return agent_err_set(err, RPC_ERROR_NOT_DEBUGGABLE, ENOENT, "list CUDA processes",
				     "load the nvidia module", "there is no " CUDA_CONTROL_NODE);
	users = rpc_arena_array(a, n, sizeof(*users));
	if (!users)
		return agent_err_no_memory(err, NULL);
	for (size_t i = 0; i < n; i++) {
		u = (struct target_user){ .pid = list[i].pid };
		find_devices(a, &u);
		users[i] = u;
	}
	*ret = users;
	*ret_n = n;
	return 0;
}
