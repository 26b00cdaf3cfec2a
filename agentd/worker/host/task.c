/* SPDX-License-Identifier: MIT */
#include "agentd/worker/host/task.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/elf_view.h"
#include "base/str.h"
#include "base/vec.h"

#define LINE_MAX_ 512

int tasks_open(struct tasks *t, pid_t pid)
{
	char path[40];

	*t = (struct tasks){ .fd = -1, .machine = elf_own_machine() };
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	t->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return t->fd < 0 ? -errno : 0;
}

void tasks_close(struct tasks *t)
{
	if (t->fd >= 0)
		close(t->fd);
	free(t->list);
	*t = (struct tasks){ .fd = -1 };
}

/* Read a file of one thread.  @return its length, or -errno; the text ends with NUL. */
static ssize_t read_file(const struct tasks *t, uint32_t tid, const char *name, char *text, size_t size)
{
	char path[48];
	auto_close int fd = -1;
	ssize_t n;

	snprintf(path, sizeof(path), "%u/%s", tid, name);
	fd = openat(t->fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	if (n < 0)
		return -errno;
	text[n] = '\0';
	return n;
}

/* The third number of schedstat; 0 where the kernel counts nothing. */
static uint64_t read_switches(const struct tasks *t, uint32_t tid)
{
	char text[96];
	uint64_t n = 0;

	if (read_file(t, tid, "schedstat", text, sizeof(text)) < 0 ||
	    sscanf(text, "%*u %*u %" SCNu64, &n) != 1)
		return 0;
	return n;
}

void task_take_call(struct task *task, const char *text)
{
	int n;

	task->is_off = !str_starts_with(text, "running");
	n = sscanf(text, "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %*s %*s %" SCNx64 " %" SCNx64,
		   &task->call, &task->first_argument, &task->second_argument, &task->third_argument,
		   &task->fourth_argument, &task->stack_pointer, &task->instruction);
	task->has_call = n == 7 && task->call >= 0;
	/* Not in a call, but for instance in a page fault: -1 SP PC. */
	task->has_registers = task->has_call || (n >= 1 && task->call == -1 &&
						 sscanf(text, "%*d %" SCNx64 " %" SCNx64, &task->stack_pointer,
							&task->instruction) == 2);
}

/*
 * /proc/PID/task/TID/syscall: the kernel makes sure that the thread was off the processors all the while, and says
 * `running` otherwise (lib/syscall.c).
 * @return false: it does not tell us.
 */
static bool read_call(const struct tasks *t, struct task *task)
{
	char text[LINE_MAX_];

	if (read_file(t, task->tid, "syscall", text, sizeof(text)) <= 0)
		return false;
	task_take_call(task, text);
	return true;
}

/* wchan names where it waits only if it is off the processors (kernel/sched/core.c, get_wchan()). */
static bool has_channel(const struct tasks *t, uint32_t tid)
{
	char text[LINE_MAX_];

	return read_file(t, tid, "wchan", text, sizeof(text)) > 0 && text[0] != '0';
}

void task_look(const struct tasks *t, struct task *task)
{
	const uint64_t before = task->switches;
	const bool was_off = task->is_off;

	if (t->is_still)
		return;
	task->switches = read_switches(t, task->tid);
	task->is_refused = !read_call(t, task);
	if (!task->is_refused)
		return;
	if (was_off && before && task->switches == before)
		return;
	task->has_call = task->has_registers = false;
	task->is_off = has_channel(t, task->tid);
}

bool task_has_rested(const struct tasks *t, const struct task *task)
{
	return t->is_still || (task->is_off && task->switches && read_switches(t, task->tid) == task->switches);
}

uint64_t task_moment(const struct tasks *t, const struct task *task)
{
	return t->is_still ? 1 : task->switches;
}

static uint32_t read_ns_tid(const struct tasks *t, uint32_t tid)
{
	char text[4096];
	const char *at;

	if (read_file(t, tid, "status", text, sizeof(text)) < 0 || !(at = strstr(text, "\nNSpid:")))
		return tid;
	at += strcspn(at + 1, "\n") + 1;
	while (at > text && at[-1] != '\t' && at[-1] != ' ')
		at--;
	return (uint32_t)strtoul(at, NULL, 10);
}

static int by_tid(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

void tasks_sort(struct tasks *t)
{
	if (t->n)
		qsort(t->list, t->n, sizeof(*t->list), by_tid);
}

static int add(struct tasks *t, uint32_t tid)
{
	if (t->n >= TASKS_MAX) {
		t->is_cut = true;
		return 0;
	}
	if (vec_reserve(&t->list, t->n, 1, &t->capacity, sizeof(*t->list)) < 0)
		return -ENOMEM;
	t->list[t->n++] = (struct task){ .tid = tid, .ns_tid = tid };
	return 0;
}

int tasks_list(struct tasks *t, bool is_nested)
{
	int fd = fcntl(t->fd, F_DUPFD_CLOEXEC, 0), r = 0;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	uint64_t tid;

	if (!dir) {
		r = -errno;
		if (fd >= 0)
			close(fd);
		return r;
	}
	while (r == 0 && (e = readdir(dir)))
		if (str_to_u64(e->d_name, 1, INT32_MAX, &tid) == 0)
			r = add(t, (uint32_t)tid);
	closedir(dir);
	tasks_sort(t);
	for (size_t i = 0; i < t->n; i++) {
		if (is_nested)
			t->list[i].ns_tid = read_ns_tid(t, t->list[i].tid);
		task_look(t, &t->list[i]);
	}
	return r;
}

/* Read the name, which may hold anything, also parentheses, and the state: PID (NAME) STATE ... */
static char read_name_and_state(const struct tasks *t, const struct task *task, char *name, size_t size)
{
	char text[LINE_MAX_];
	const char *open, *close;

	if (read_file(t, task->tid, "stat", text, sizeof(text)) < 0 || !(open = strchr(text, '(')) ||
	    !(close = strrchr(text, ')')) || close < open)
		return 'X';
	snprintf(name, size, "%.*s", (int)(close - open - 1), open + 1);
	return close[1] == ' ' ? close[2] : '?';
}

void tasks_describe(struct tasks *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct task *task = &t->list[i];

		task->state = read_name_and_state(t, task, task->name, sizeof(task->name));
		str_make_printable(task->name);
	}
}

char task_state(const struct tasks *t, const struct task *task)
{
	char name[sizeof(task->name)];

	return read_name_and_state(t, task, name, sizeof(name));
}

struct task *tasks_find(const struct tasks *t, uint64_t ns_tid)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->list[i].ns_tid == ns_tid)
			return &t->list[i];
	return NULL;
}

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

ssize_t tasks_children(const struct tasks *t, uint32_t *ret, size_t max)
{
	char text[16384];
	size_t n = 0, listed = 0;
	bool is_told = false;

	for (size_t i = 0; i < t->n; i++) {
		char *at = text, *end;

		if (read_file(t, t->list[i].tid, "children", text, sizeof(text)) < 0)
			continue;
		is_told = true;
		for (unsigned long pid; (pid = strtoul(at, &end, 10)) && end != at; at = end, n++)
			if (n < max)
				ret[listed++] = (uint32_t)pid;
	}
	if (listed)
		qsort(ret, listed, sizeof(*ret), by_number);
	return is_told ? (ssize_t)n : -ENOENT;
}
