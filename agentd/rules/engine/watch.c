/* SPDX-License-Identifier: MIT */
#include "agentd/rules/engine/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agentd/access.h"
#include "agentd/child.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

/* Programs open a device several times when they start. */
#define LOOK_AFTER_MS 20
#define LOOK_GAP_MS   200
#define AGAIN_MS      300
#define AGAIN_MAX     6	    /* then only when something happens, and not more often than: */
#define AGAIN_SLOW_MS 60000 /* a watch that lasted longer was no failure */
#define WATCHES_MAX   1024

enum watch_state { WATCH_ON, WATCH_FAILED, WATCH_RELEASED };

struct watched {
	struct watched *next;
	pid_t pid;
	int pidfd; /* what keeps a number from standing for another process */
	enum ipc_vendor vendor;
	enum watch_state state;
	uint32_t worker;     /* the last one; 0: none */
	uint32_t before;     /* the one before */
	uint64_t started_ns; /* the last time */
	unsigned failures;
	uint64_t again_at; /* WATCH_FAILED: try then; 0: not by itself */
};

void watches_init(struct watches *w, const struct rules *rules, const char *kfd_device,
		  const struct rules_monitor *monitor, void *ctx)
{
	*w = (struct watches){ .monitor = monitor, .ctx = ctx, .rules = rules,
			       .kfd_device = kfd_device, .discover = DISCOVER_NULL };
}

static void free_watched(struct watched *i)
{
	close(i->pidfd);
	free(i);
}

/* Forget the dead, or all. */
static void prune(struct watches *w, bool all)
{
	struct watched **link = &w->first;

	while (*link) {
		struct watched *i = *link;

		if (!all && access_is_alive(i->pidfd)) {
			link = &i->next;
			continue;
		}
		*link = i->next;
		w->n--;
		free_watched(i);
	}
}

static struct watched *find_pid(struct watches *w, pid_t pid)
{
	for (struct watched *i = w->first; i; i = i->next)
		if (i->pid == pid && access_is_alive(i->pidfd))
			return i;
	return NULL;
}

static struct watched *find_worker(struct watches *w, uint32_t worker)
{
	for (struct watched *i = w->first; i; i = i->next)
		if (i->state == WATCH_ON && i->worker == worker)
			return i;
	return NULL;
}

/* ------------------------------------------------------------------ looking ------------------ */

static void look_in(struct watches *w, uint32_t ms)
{
	uint64_t at = clock_deadline_ms(ms),
		 earliest = w->looked_at + UINT64_C(1000000) * LOOK_GAP_MS;

	if (w->looker) {
		w->look_again = true;
		return;
	}
	if (w->looked_at && at < earliest)
		at = earliest;
	if (!w->look_at || at < w->look_at)
		w->look_at = at;
}

/* Nothing may ever happen again that has to do with what it has not seen. */
static void look_failed(struct watches *w)
{
	unsigned n = w->look_failures++;

	if (w->rules->n && n < AGAIN_MAX)
		look_in(w, AGAIN_MS << n);
}

static void begin_look(struct watches *w)
{
	int r;

	w->look_at = 0;
	w->looked_at = clock_now_ns();
	prune(w, false);
	r = w->monitor->look(w->ctx, &w->looker);
	/* An agent that stops looks for nobody. */
	if (r == 0 || r == -ESHUTDOWN)
		return;
	log_error("rules: cannot look for GPU processes: %s", strerror(-r));
	look_failed(w);
}

static void look_ended(struct watches *w, bool clean)
{
	bool again = w->look_again;

	w->looker = 0;
	w->look_again = false;
	if (clean)
		w->look_failures = 0;
	else
		look_failed(w);
	if (again)
		look_in(w, LOOK_AFTER_MS);
}

void watches_hint(struct watches *w)
{
	if (w->rules->n)
		look_in(w, LOOK_AFTER_MS);
}

void watches_readable(struct watches *w)
{
	if (discover_read(&w->discover))
		watches_hint(w);
}

/* ------------------------------------------------------------------ judging ------------------ */

/* What the pidfd holds, as far as rules ask.  @return the rule that has it. */
static const struct rule *judge(const struct watches *w, pid_t pid, int pidfd,
				enum ipc_vendor vendor)
{
	struct rule_subject s = { .vendor = vendor };
	struct rules_process process;
	const struct rule *rule = NULL;

	if (w->monitor->read(w->ctx, pid, pidfd, &process) < 0)
		return NULL;
	s.uid = process.uid;
	s.exe = process.exe[0] ? process.exe : NULL;
	s.cgroup = process.cgroup;
	/* Two agents would watch each other's workers without end. */
	if (!child_is_worker(process.exe))
		rule = rules_match(w->rules, &s);
	free(process.cgroup);
	return rule;
}

static void failed(struct watched *i)
{
	unsigned n = i->failures++;

	i->state = WATCH_FAILED;
	i->again_at = n < AGAIN_MAX ? clock_deadline_ms((uint64_t)AGAIN_MS << n) : 0;
}

static void start(struct watches *w, struct watched *i, const struct rule *rule)
{
	struct ipc_watch m;
	struct ipc_rule told;
	int r;

	rules_tell(rule, &told);
	told.again = i->failures > 0;
	r = w->monitor->watch(w->ctx, i->pid, i->pidfd, i->vendor, &told, &m);
	i->started_ns = clock_now_ns();
	if (r < 0) {
		log_line(i->failures || r == -ESHUTDOWN ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING,
			 "rule %s: process %d is not watched: %s", rule->name, (int)i->pid,
			 strerror(-r));
		failed(i);
		return;
	}
	log_line(i->failures ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, "rule %s watches process %d (%s)",
		 rule->name, (int)i->pid, m.comm);
	i->state = WATCH_ON;
	i->before = i->worker;
	i->worker = m.worker;
	i->again_at = 0;
}

/*
 * Each try opens devices, which begins a look that finds the process again: only the first failure,
 * which may have come too early, does not wait for its time.
 */
static bool may_try(const struct watched *i)
{
	if (i->state != WATCH_FAILED || i->failures <= 1)
		return i->state == WATCH_FAILED;
	return !i->again_at &&
	       clock_now_ns() - i->started_ns >= UINT64_C(1000000) * AGAIN_SLOW_MS;
}

/* @return what is known about it, or NULL: no rule has it. */
static struct watched *add_found(struct watches *w, pid_t pid, enum ipc_vendor vendor)
{
	auto_close int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	const struct rule *rule = pidfd < 0 ? NULL : judge(w, pid, pidfd, vendor);
	struct watched *i;

	if (!rule || w->n == WATCHES_MAX)
		return NULL;
	i = calloc(1, sizeof(*i));
	if (!i)
		return NULL;
	*i = (struct watched){ .next = w->first, .pid = pid, .pidfd = TAKE_FD(pidfd), .vendor = vendor };
	w->first = i;
	w->n++;
	start(w, i, rule);
	return i;
}

bool watches_found(struct watches *w, pid_t pid, enum ipc_vendor vendor)
{
	struct watched *i = find_pid(w, pid);
	const struct rule *rule;

	if (!i) {
		i = add_found(w, pid, vendor);
	} else if (may_try(i)) {
		rule = judge(w, pid, i->pidfd, vendor);
		if (rule)
			start(w, i, rule);
	}
	return i && i->state == WATCH_ON;
}

/* @param keep_alive  Whether only those that have ended are forgotten. */
static void forget_cut(struct watches *w, bool keep_alive)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->n_cut; i++)
		if (keep_alive && access_is_alive(w->cut[i].pidfd))
			w->cut[kept++] = w->cut[i];
		else
			close(w->cut[i].pidfd);
	w->n_cut = kept;
}

bool watches_cut(struct watches *w, pid_t pid)
{
	auto_close int pidfd = -1;

	forget_cut(w, true);
	for (size_t i = 0; i < w->n_cut; i++)
		if (w->cut[i].pid == pid)
			return false;
	pidfd = w->n_cut < WATCH_CUT_MAX ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	if (pidfd < 0)
		return false;
	w->cut[w->n_cut].pid = pid;
	w->cut[w->n_cut++].pidfd = TAKE_FD(pidfd);
	log_warning("process %d has mapped so much that it was not read to the end: if it uses a GPU, no rule watches it%s",
		    (int)pid, w->n_cut == WATCH_CUT_MAX ? "; others are not told as long as these run" : "");
	return true;
}

void watches_worker_ended(struct watches *w, uint32_t worker, bool clean)
{
	struct watched *i = find_worker(w, worker);

	if (worker == w->looker)
		look_ended(w, clean);
	if (!i)
		return;
	if (clock_now_ns() - i->started_ns >= UINT64_C(1000000) * AGAIN_SLOW_MS)
		i->failures = 0;
	failed(i);
	prune(w, false);
}

static void try_again(struct watches *w, struct watched *i)
{
	const struct rule *rule = judge(w, i->pid, i->pidfd, i->vendor);

	i->again_at = 0;
	if (rule)
		start(w, i, rule);
}

uint64_t watches_deadlines(struct watches *w)
{
	uint64_t now = clock_now_ns(), next;

	if (w->look_at && w->look_at <= now)
		begin_look(w);
	next = w->look_at;
	for (struct watched *i = w->first; i; i = i->next) {
		if (i->again_at && i->again_at <= now)
			try_again(w, i);
		if (i->again_at && (!next || i->again_at < next))
			next = i->again_at;
	}
	return next;
}

/* ------------------------------------------------------------------ changes ------------------ */

void watches_release(struct watches *w, uint32_t worker)
{
	struct watched *i = w->first;

	/* The end of that worker may have been told first, and the next one begun. */
	while (i && ((i->worker != worker && i->before != worker) || i->state == WATCH_RELEASED))
		i = i->next;
	if (!i)
		return;
	log_info("process %d is released from its rule", (int)i->pid);
	if (i->state == WATCH_ON)
		w->monitor->let_go(w->ctx, i->worker);
	i->state = WATCH_RELEASED;
	i->again_at = 0;
}

/* What was watched before, by the rules of now. */
static void judge_again(struct watches *w, struct watched *i)
{
	const struct rule *rule = judge(w, i->pid, i->pidfd, i->vendor);

	i->failures = 0;
	i->again_at = 0;
	if (i->state == WATCH_ON && rule) {
		start(w, i, rule);
	} else if (i->state == WATCH_ON) {
		w->monitor->let_go(w->ctx, i->worker);
		i->state = WATCH_FAILED;
	} else {
		i->state = WATCH_FAILED;
	}
}

void watches_configure(struct watches *w)
{
	const char *const nodes[] = { w->kfd_device, "/dev/nvidiactl", "/dev/nvidia-uvm" };
	int r;

	w->look_failures = 0;
	for (struct watched *i = w->first; i; i = i->next)
		judge_again(w, i);
	if (!w->rules->n) {
		discover_stop(&w->discover);
		prune(w, true);
		w->look_at = 0;
		return;
	}
	r = discover_start(&w->discover, nodes, ARRAY_SIZE(nodes));
	if (r < 0)
		log_error("rules: inotify: %s", strerror(-r));
	look_in(w, 0);
}

void watches_deinit(struct watches *w)
{
	discover_stop(&w->discover);
	prune(w, true);
	forget_cut(w, false);
}
