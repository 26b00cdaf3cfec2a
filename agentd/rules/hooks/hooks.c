/* SPDX-License-Identifier: MIT */
#include "agentd/rules/hooks/hooks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/child.h"
#include "agentd/ipc/link.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"

/* The runner reports by itself; this is for one that the user database or a disk keeps waiting. */
#define RUNNER_GRACE_MS 10000
#define CHECK_MS	10000
/* Looks at files wait for each other. */
#define CHECKS_MAX 16

struct hook_task {
	struct hook_task *next;
	struct hook_job *jobs; /* one to run, or all to look at */
	size_t n_jobs;
	size_t n_reports;
	char rule[HOOK_RULE_MAX];
	pid_t target;
	int document_fd;
	uint64_t document_bytes;
	pid_t pid; /* the runner; 0: waits */
	int link_fd;
	uint64_t kill_at;
	bool stuck;
	bool over; /* told, but the runner still is busy with what does not die */
	hook_done_fn done;
	struct hook_info *list; /* of a look */
	hooks_list_fn listed;
	void *ctx;
};

void hooks_init(struct hooks *h, const char *program)
{
	*h = (struct hooks){ .program = program };
}

int hooks_configure(struct hooks *h, const struct hook_rule *rules, size_t n)
{
	return hook_rules_configure(&h->rules, rules, n);
}

static bool is_check(const struct hook_task *t)
{
	return t->list != NULL;
}

static void task_free(struct hook_task *t)
{
	if (!t)
		return;
	if (t->document_fd >= 0)
		close(t->document_fd);
	if (t->link_fd >= 0)
		close(t->link_fd);
	free(t->jobs);
	free(t->list);
	free(t);
}
DEFINE_AUTO(struct hook_task *, task_free);

static struct hook_task *task_create(size_t n_jobs)
{
	struct hook_task *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->document_fd = t->link_fd = -1;
	t->jobs = calloc(n_jobs, sizeof(*t->jobs));
	t->n_jobs = n_jobs;
	if (!t->jobs) {
		task_free(t);
		return NULL;
	}
	return t;
}

static void task_append(struct hooks *h, struct hook_task *t)
{
	struct hook_task **link = &h->first;

	while (*link)
		link = &(*link)->next;
	*link = t;
}

static void task_remove(struct hooks *h, struct hook_task *t)
{
	struct hook_task **link = &h->first;

	while (*link != t)
		link = &(*link)->next;
	*link = t->next;
	task_free(t);
}

/* ------------------------------------------------------------------ outcome ------------------ */

static void finish_check(struct hooks *h, struct hook_task *t)
{
	for (size_t i = t->n_reports; i < t->n_jobs; i++) {
		t->list[i].check = HOOK_END_FAILED;
		str_copy(t->list[i].why, sizeof(t->list[i].why), "not looked at in time");
	}
	for (size_t i = 0; i < t->n_jobs; i++) {
		const struct hook_entry *e = hook_rules_find(&h->rules, t->list[i].rule);

		if (e && e->rule.takes_root && !e->rule.user[0] && t->list[i].check == HOOK_END_EXIT)
			str_copy(t->list[i].why, sizeof(t->list[i].why),
				 "not run for processes of root: set hook_user, to root if that is meant");
	}
	t->listed(t->ctx, t->list, t->n_jobs);
}

/* Tells once; the task stays until its runner is reaped. */
static void finish(struct hooks *h, struct hook_task *t, const struct hook_report *report)
{
	if (t->over)
		return;
	t->over = true;
	t->kill_at = 0;
	if (is_check(t)) {
		finish_check(h, t);
		return;
	}
	hook_rules_count(&h->rules, t->rule, report);
	hook_rules_log(&t->jobs[0], t->rule, t->target, report);
	if (t->done)
		t->done(t->ctx, report);
}

static void finish_without_report(struct hooks *h, struct hook_task *t, enum hook_end end,
				  const char *why)
{
	struct hook_report *report = calloc(1, sizeof(*report));
	static struct hook_report no_memory;

	report = report ? report : &no_memory;
	report->end = end;
	report->uid = t->jobs[0].uid;
	str_copy(report->why, sizeof(report->why), why);
	finish(h, t, report);
	if (report != &no_memory)
		free(report);
}

/* ------------------------------------------------------------------ starting ----------------- */

static _Noreturn void runner_exec(const struct hooks *h, const struct hook_task *t, int job,
				  int link)
{
	static const int to[] = { HOOK_FD_JOB, HOOK_FD_LINK };
	const int from[] = { job, link };
	const char *const argv[] = { h->program, NULL };
	int document = t->document_fd >= 0 ? t->document_fd : open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (document < 0 || dup2(document, STDIN_FILENO) < 0)
		_exit(127);
	child_place_fds(from, to, ARRAY_SIZE(to));
	child_exec(h->program, argv, 0);
}

static int start(struct hooks *h, struct hook_task *t)
{
	auto_close int job = -1, ours = -1, theirs = -1;
	int pair[2],
		r = fd_memfd_sealed("gpu-agent-hook", t->jobs, t->n_jobs * sizeof(*t->jobs), &job);

	if (r == 0)
		r = fd_socketpair(SOCK_NONBLOCK, pair);
	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	t->pid = fork();
	if (t->pid == 0)
		runner_exec(h, t, job, theirs);
	if (t->pid < 0) {
		t->pid = 0;
		return -errno;
	}
	t->link_fd = TAKE_FD(ours);
	t->kill_at = clock_deadline_ms(
		is_check(t) ? CHECK_MS : t->jobs[0].limits.timeout_ms + RUNNER_GRACE_MS);
	return 0;
}

static bool has_room(const struct hooks *h, bool check)
{
	size_t n = 0;

	for (const struct hook_task *t = h->first; t; t = t->next)
		n += t->pid && is_check(t) == check;
	return n < (check ? 1 : HOOKS_RUNNING_MAX);
}

/* Callbacks may change the list: from the beginning again after each. */
static void start_waiting(struct hooks *h)
{
	struct hook_task *t = h->first;

	while (t) {
		int r = 0;

		if (!t->pid && has_room(h, is_check(t)))
			r = start(h, t);
		if (r == 0) {
			t = t->next;
			continue;
		}
		finish_without_report(h, t, HOOK_END_FAILED, strerror(-r));
		task_remove(h, t);
		t = h->first;
	}
}

/* ------------------------------------------------------------------ asking ------------------- */

static bool must_refuse(const struct hooks *h, uint64_t bytes)
{
	size_t n = 0;

	for (const struct hook_task *t = h->first; t; t = t->next) {
		n += !t->pid && !is_check(t);
		bytes += !t->pid ? t->document_bytes : 0;
	}
	return n >= HOOKS_WAITING_MAX || bytes > HOOKS_WAITING_BYTES_MAX;
}

static int take_document(struct hook_task *t, int fd)
{
	struct stat st;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	t->document_bytes = (uint64_t)st.st_size;
	t->document_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return t->document_fd < 0 ? -errno : 0;
}

static int queue(struct hooks *h, struct hook_task **take)
{
	struct hook_task *t = TAKE_PTR(*take);
	int r = has_room(h, is_check(t)) ? start(h, t) : 0;

	if (r < 0)
		task_free(t);
	else
		task_append(h, t);
	return r;
}

int hooks_run(struct hooks *h, const struct hook_event *e, hook_done_fn done, void *ctx)
{
	struct hook_entry *entry = hook_rules_find(&h->rules, e->rule);
	auto_call(task_freep) struct hook_task *t = NULL;
	int r;

	if (!entry)
		return -ENOENT;
	if (h->stopping)
		return -ESHUTDOWN;
	t = task_create(1);
	if (!t)
		return -ENOMEM;
	r = hook_rules_job(&entry->rule, e, &t->jobs[0]);
	if (r == 0)
		r = take_document(t, e->document_fd);
	if (r < 0)
		return r;
	if (!has_room(h, false) && must_refuse(h, t->document_bytes)) {
		if (entry->info.counts.dropped++ == 0)
			log_warning("rule %s: too many hooks wait: not run", e->rule);
		return -ENOBUFS;
	}
	str_copy(t->rule, sizeof(t->rule), e->rule);
	t->target = e->pid;
	t->done = done;
	t->ctx = ctx;
	return queue(h, &t);
}

void hooks_count(const struct hooks *h, struct hook_info *ret)
{
	for (size_t i = 0; i < h->rules.n; i++) {
		ret[i] = h->rules.entries[i].info;
		for (const struct hook_task *k = h->first; k; k = k->next) {
			if (k->over || strcmp(k->rule, ret[i].rule) != 0)
				continue;
			ret[i].running += k->pid != 0;
			ret[i].waiting += k->pid == 0;
		}
	}
}

int hooks_list(struct hooks *h, uid_t uid, gid_t gid, bool by_rule, hooks_list_fn done, void *ctx)
{
	const struct hook_event nobody = { .uid = uid, .gid = gid, .document_fd = -1 };
	auto_call(task_freep) struct hook_task *t = NULL;
	size_t n = 0;

	if (!h->rules.n)
		return -ENOENT;
	if (h->stopping)
		return -ESHUTDOWN;
	for (const struct hook_task *i = h->first; i; i = i->next)
		n += is_check(i);
	if (n >= CHECKS_MAX)
		return -ENOBUFS;
	t = task_create(h->rules.n);
	if (!t)
		return -ENOMEM;
	t->list = calloc(h->rules.n, sizeof(*t->list));
	if (!t->list)
		return -ENOMEM;
	t->listed = done;
	t->ctx = ctx;
	for (size_t i = 0; i < h->rules.n; i++) {
		const struct hook_rule *rule = &h->rules.entries[i].rule;
		int r = hook_rules_job(rule, &nobody, &t->jobs[i]);

		if (r < 0)
			return r;
		/* The runner finds the group of a user whom the database knows. */
		if (by_rule && rule->has_target_uid)
			t->jobs[i].uid = rule->target_uid;
		t->jobs[i].check = 1;
	}
	hooks_count(h, t->list);
	return queue(h, &t);
}

/* ------------------------------------------------------------------ the loop ----------------- */

size_t hooks_poll(const struct hooks *h, struct pollfd *fds)
{
	size_t n = 0;

	for (const struct hook_task *t = h->first; t; t = t->next)
		if (t->link_fd >= 0)
			fds[n++] = (struct pollfd){ .fd = t->link_fd, .events = POLLIN };
	return n;
}

static bool is_sane(const struct hook_report *r)
{
	return r->end < HOOK_END_COUNT && r->output_size <= HOOK_OUTPUT_MAX &&
	       memchr(r->why, '\0', sizeof(r->why));
}

static void take_report(struct hooks *h, struct hook_task *t, const struct hook_report *report)
{
	struct hook_info *info;

	if (!is_check(t)) {
		finish(h, t, report);
		return;
	}
	if (t->n_reports == t->n_jobs)
		return;
	info = &t->list[t->n_reports++];
	info->check = report->end;
	info->checked_uid = report->uid;
	str_copy(info->why, sizeof(info->why), report->why);
	if (t->n_reports == t->n_jobs)
		finish(h, t, report);
}

void hooks_readable(struct hooks *h, int fd)
{
	static struct hook_report report;
	struct hook_task *t = h->first;
	int extra, r;

	while (t && t->link_fd != fd)
		t = t->next;
	while (t && (r = ipc_recv_fixed(fd, &report, sizeof(report), &extra)) == 1) {
		if (extra >= 0)
			close(extra);
		if (is_sane(&report))
			take_report(h, t, &report);
	}
	if (!t || r == -EAGAIN)
		return;
	/* It ends, and will be reaped. */
	close(TAKE_FD(t->link_fd));
}

uint64_t hooks_deadlines(struct hooks *h)
{
	uint64_t next = 0, now = clock_now_ns();

	for (struct hook_task *t = h->first; t; t = t->next) {
		if (t->kill_at && t->kill_at <= now) {
			t->stuck = true;
			t->kill_at = 0;
			kill(t->pid, SIGKILL);
		}
		if (t->kill_at && (!next || t->kill_at < next))
			next = t->kill_at;
	}
	return next;
}

bool hooks_reaped(struct hooks *h, pid_t pid, int wait_status)
{
	struct hook_task *t = h->first;
	char why[80];

	while (t && t->pid != pid)
		t = t->next;
	if (!t)
		return false;
	/* Its last words may be unread. */
	if (t->link_fd >= 0)
		hooks_readable(h, t->link_fd);
	snprintf(why, sizeof(why), "the runner %s (status 0x%x)", t->stuck ? "passed its deadline" : "died",
		 (unsigned)wait_status);
	finish_without_report(h, t, HOOK_END_FAILED, why);
	task_remove(h, t);
	start_waiting(h);
	return true;
}

static struct hook_task *find_waiting(struct hooks *h)
{
	struct hook_task *t = h->first;

	while (t && (t->pid || t->over))
		t = t->next;
	return t;
}

void hooks_stop(struct hooks *h)
{
	struct hook_task *t;

	h->stopping = true;
	while ((t = find_waiting(h))) {
		finish_without_report(h, t, HOOK_END_STOPPED, "the agent stops");
		task_remove(h, t);
	}
	/* They see our end of file, and we still hear what they report. */
	for (t = h->first; t; t = t->next)
		if (t->link_fd >= 0)
			shutdown(t->link_fd, SHUT_WR);
}

bool hooks_is_busy(const struct hooks *h)
{
	for (const struct hook_task *t = h->first; t; t = t->next)
		if (!t->over)
			return true;
	return false;
}

void hooks_deinit(struct hooks *h)
{
	hooks_stop(h);
	while (h->first) {
		finish_without_report(h, h->first, HOOK_END_STOPPED, "the agent stops");
		task_remove(h, h->first);
	}
	hook_rules_deinit(&h->rules);
}
