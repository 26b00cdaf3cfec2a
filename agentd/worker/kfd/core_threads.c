/* SPDX-License-Identifier: MIT */
/*
 * The host's half of a unified core.  The session has seized the main thread already.  A thread
 * made for it seizes all others: when that thread ends, or the worker dies, the kernel lets them
 * go, stopped or not.
 */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "agentd/worker/kfd/core_write.h"
#include "agentd/worker/process/mappings.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/elf_view.h"
#include "base/fd.h"
#include "base/page.h"
#include "base/str.h"
#include "base/vec.h"
#include "corefile/pack.h"
#include "corefile/process.h"

#define THREADS_MAX  4096u
/* No thread has a larger number (PID_MAX_LIMIT in the kernel's linux/threads.h). */
#define TID_MAX      (1u << 22)
/* Largest mapping of variables of a program or library that is added for them. */
#define VARIABLES_MAX (UINT64_C(4) << 20)
/* Time for one thread to stop: one that sleeps in the kernel, uninterruptibly, does not. */
#define THREAD_MS    100
#define AUXV_MAX     4096u
#define STATUS_MAX   (16u << 10)
/* Bounds for a list in the memory of a process that may be up to anything. */
#define HEADERS_MAX  256u
#define DYNAMIC_MAX  1024u
#define LIBRARIES_MAX 4096u /* Each page of the list is searched for among all pieces. */
#define NOTES_PER_THREAD (2 + COREFILE_SETS_MAX)
#define NOTES_OF_PROCESS 3
#define STACK_SIZE   ((size_t)256 << 10)

/* One thread: registers and the top of its stack, copied while it was stopped. */
struct host_thread {
	pid_t tid;
	bool ok, gone; /* It was copied; it had ended. */
	struct elf_prstatus status;
	elf_fpregset_t floating;
	size_t floating_size;
	struct {
		uint8_t *bytes; /* malloc'ed. */
		size_t size;
	} sets[COREFILE_SETS_MAX]; /* As the processor has them. */
	uint64_t stack_at, stack_size;
	uint8_t *stack;
};

/* All of the host's half. */
struct kfd_core_host {
	struct kfd_core *c;
	const struct corefile_processor *processor;
	struct host_thread *threads;
	uint8_t *listed; /* One bit for each tid: it is in `threads`. */
	size_t n_threads, n_beyond; /* Threads in `threads`; threads without room there. */
	uint64_t deadline_ns, stopped_ns; /* For all; the longest stop of one thread. */
	struct elf_prpsinfo process;
	char *auxv, *files;
	size_t auxv_size, files_size;
	size_t n_files, files_capacity;
	struct host_file *file;
	uint64_t *beginnings; /* Where the first bytes of files are mapped, in ascending order. */
	size_t n_beginnings, beginnings_capacity;
	struct amdcore_note *notes;
};

/* One entry of the note NT_FILE. */
struct host_file {
	uint64_t begin, end, offset;
	char *path;
};

/* ------------------------------------------------------------------ a thread that is stopped - */

/* @return the number of bytes; 0: the kernel does not have that set of registers, or refuses. */
static size_t get_registers(pid_t tid, int kind, void *to, size_t size)
{
	struct iovec v = { .iov_base = to, .iov_len = size };

	return ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)kind, &v) < 0 ? 0 : v.iov_len;
}

static uint64_t stack_pointer(const struct kfd_core_host *h, const struct host_thread *t)
{
	uint64_t sp;

	memcpy(&sp, (const char *)&t->status.pr_reg + h->processor->stack_pointer * sizeof(sp), sizeof(sp));
	return sp;
}

static void copy_stack(struct kfd_core_host *h, struct host_thread *t)
{
	const uint64_t sp = stack_pointer(h, t), begin = page_down(sp);
	const size_t size = page_up(sp + COREFILE_AGENT_STACK_BYTES) - begin;
	ssize_t n;

	t->stack = malloc(size);
	n = t->stack ? memory_read(&h->c->k->t.memory, begin, t->stack, size) : 0;
	t->stack_at = begin;
	t->stack_size = n > 0 ? page_down((uint64_t)n) : 0;
}

/* Copy a thread that is stopped. */
static void look(struct kfd_core_host *h, struct host_thread *t)
{
	t->ok = get_registers(t->tid, NT_PRSTATUS, &t->status.pr_reg, sizeof(t->status.pr_reg)) ==
		sizeof(t->status.pr_reg);
	t->floating_size = get_registers(t->tid, NT_PRFPREG, &t->floating, sizeof(t->floating));
	for (size_t i = 0; i < h->processor->n_sets; i++) {
		t->sets[i].bytes = malloc(COREFILE_SET_MAX);
		if (t->sets[i].bytes)
			t->sets[i].size = get_registers(t->tid, (int)h->processor->sets[i], t->sets[i].bytes,
							COREFILE_SET_MAX);
	}
	t->status.pr_pid = t->tid;
	t->status.pr_fpvalid = t->floating_size != 0;
	if (t->ok)
		copy_stack(h, t);
}

static void note_time(struct kfd_core_host *h, uint64_t began)
{
	uint64_t ns = clock_now_ns() - began;

	if (ns > h->stopped_ns)
		h->stopped_ns = ns;
}

static uint64_t thread_deadline(const struct kfd_core_host *h)
{
	uint64_t soon = clock_deadline_ms(THREAD_MS);

	return soon < h->deadline_ns ? soon : h->deadline_ns;
}

/* ------------------------------------------------------------------ all of them -------------- */

/* Detach; the signal for which the thread stopped reaches it, and a group stop goes on. */
static void let_go(pid_t tid, int status)
{
	int sig = status >> 16 ? 0 : WSTOPSIG(status);

	ptrace(PTRACE_DETACH, tid, NULL, (void *)(intptr_t)sig);
}

/*
 * Has the thread ended?  If its tracer has not reaped it yet, ptrace(2) says EPERM for it, just as
 * for a thread that may not be traced, so /proc is asked.
 */
static bool has_ended(const struct kfd_core_host *h, pid_t tid)
{
	auto_free char *text = NULL;
	struct access_target facts;
	char path[48];
	size_t n;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", (int)h->c->k->t.facts.pid, (int)tid);
	r = fd_read_file(path, STATUS_MAX, &text, &n);
	if (r < 0)
		return r == -ENOENT || r == -ESRCH;
	return access_status_parse(text, n, &facts) == 0 &&
	       (facts.state == 'Z' || facts.state == 'X');
}

static void visit(struct kfd_core_host *h, struct host_thread *t)
{
	uint64_t began = clock_now_ns();
	int status;

	/* A thread that does not stop in time is let go when this thread, its tracer, ends. */
	if (ptrace(PTRACE_SEIZE, t->tid, NULL, NULL) < 0 ||
	    ptrace(PTRACE_INTERRUPT, t->tid, NULL, NULL) < 0 ||
	    leader_wait_stop(&leader_real_sys, t->tid, thread_deadline(h), &status) < 0) {
		t->gone = has_ended(h, t->tid);
		return;
	}
	look(h, t);
	let_go(t->tid, status);
	note_time(h, began);
}

static bool make_table(struct kfd_core_host *h)
{
	h->threads = calloc(THREADS_MAX, sizeof(*h->threads));
	h->listed = calloc(TID_MAX / 8, 1);
	return h->threads && h->listed;
}

static void add_thread(struct kfd_core_host *h, pid_t tid)
{
	uint8_t *byte = &h->listed[tid / 8], bit = (uint8_t)(1u << tid % 8);

	if (*byte & bit)
		return;
	if (h->n_threads == THREADS_MAX) {
		h->n_beyond++;
		return;
	}
	*byte |= bit;
	h->threads[h->n_threads++].tid = tid;
}

/* List the threads that are new since the last time.  @return how many; n_beyond had no room. */
static size_t list_threads(struct kfd_core_host *h)
{
	size_t before = h->n_threads;
	struct dirent *e;
	char path[32];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)h->c->k->t.facts.pid);
	dir = opendir(path);
	h->n_beyond = 0;
	while (dir && (e = readdir(dir))) {
		uint64_t tid;

		if (str_to_u64(e->d_name, 1, TID_MAX - 1, &tid) == 0)
			add_thread(h, (pid_t)tid);
	}
	if (dir)
		closedir(dir);
	return h->n_threads - before;
}

/* A visited thread may have made new ones meanwhile, so this lists them again until none is new. */
static void *visit_others(void *arg)
{
	struct kfd_core_host *h = arg;
	size_t done = 1; /* The main thread is visited already. */

	do {
		for (; done < h->n_threads && clock_now_ns() < h->deadline_ns; done++)
			visit(h, &h->threads[done]);
	} while (clock_now_ns() < h->deadline_ns && list_threads(h));
	return NULL;
}

static void look_at_leader(void *ctx)
{
	struct kfd_core_host *h = ctx;

	look(h, &h->threads[0]);
}

static int visit_all(struct kfd_core_host *h)
{
	struct target *t = &h->c->k->t;
	uint64_t began = clock_now_ns();
	sigset_t all, before;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (!make_table(h))
		return -ENOMEM;
	add_thread(h, t->facts.pid);
	if (leader_stop(&t->leader, t->leader_sys, thread_deadline(h), look_at_leader, h) == 0)
		note_time(h, began);
	list_threads(h);
	/* The new thread blocks all signals: those are for the thread that waits for them. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	r = pthread_create(&thread, &attr, visit_others, h);
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r == 0)
		pthread_join(thread, NULL);
	return 0;
}

/* ------------------------------------------------------------------ the process -------------- */

/* Fill in the note NT_PRPSINFO: name, user and command line, with blanks between the arguments. */
static void read_process(struct kfd_core_host *h)
{
	const struct access_target *facts = &h->c->k->t.facts;
	auto_free char *words = NULL;
	char path[32];
	size_t n;

	h->process.pr_sname = 'R';
	h->process.pr_uid = facts->uids[0];
	h->process.pr_pid = facts->pid;
	str_copy(h->process.pr_fname, sizeof(h->process.pr_fname), facts->comm);
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)facts->pid);
	if (fd_read_file(path, 1 << 20, &words, &n) == 0) {
		for (size_t i = 0; i + 1 < n; i++)
			words[i] = words[i] ? words[i] : ' ';
		str_copy(h->process.pr_psargs, sizeof(h->process.pr_psargs), words);
	}
}

static void read_auxv(struct kfd_core_host *h)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/auxv", (int)h->c->k->t.facts.pid);
	if (fd_read_file(path, AUXV_MAX, &h->auxv, &h->auxv_size) < 0)
		h->auxv_size = 0;
}

static void add_file(struct kfd_core_host *h, const struct mapping *m)
{
	struct host_file *f;

	if (vec_reserve(&h->file, h->n_files, 1, &h->files_capacity, sizeof(*f)) < 0)
		return;
	f = &h->file[h->n_files];
	*f = (struct host_file){ m->begin, m->end, m->offset, strdup(m->path) };
	h->n_files += f->path != NULL;
}

static void add_beginning(struct kfd_core_host *h, uint64_t at)
{
	if (vec_reserve(&h->beginnings, h->n_beginnings, 1, &h->beginnings_capacity, sizeof(*h->beginnings)) == 0)
		h->beginnings[h->n_beginnings++] = at;
}

uint64_t kfd_core_next_file(const struct kfd_core_host *h, uint64_t after)
{
	size_t first = 0, end = h ? h->n_beginnings : 0;

	while (first < end) {
		const size_t middle = first + (end - first) / 2;

		if (h->beginnings[middle] > after)
			end = middle;
		else
			first = middle + 1;
	}
	return h && first < h->n_beginnings ? h->beginnings[first] : UINT64_MAX;
}

/* A walk over the mappings, in ascending order. */
struct walk {
	struct kfd_core_host *h;
	uint64_t variables_end; /* Where ordinary memory goes on with the variables of a file. */
	uint64_t begin, end;	/* The readable mapping before. */
};

/* Add what tells a debugger where libraries are: their first pages and their variables. */
static void on_mapping(void *arg, const struct mapping *m)
{
	struct walk *w = arg;
	bool is_file = m->path[0] == '/' && strncmp(m->path, "/dev/", 5) != 0;
	uint64_t size = m->end - m->begin;

	if (is_file)
		add_file(w->h, m);
	if (is_file && m->offset == 0)
		add_beginning(w->h, m->begin);
	if (!m->readable)
		return;
	if (is_file && m->offset == 0)
		kfd_core_add(w->h->c, m->begin, page_bytes());
	if (strcmp(m->path, "[vdso]") == 0)
		kfd_core_add(w->h->c, m->begin, size);
	if (m->writable && size <= VARIABLES_MAX &&
	    (is_file || (!m->path[0] && m->begin == w->variables_end)))
		kfd_core_add(w->h->c, m->begin, size);
	/*
	 * In front of the variables are those that the loader made read-only when they had got
	 * their values (RELRO).
	 */
	if (m->writable && is_file && w->end == m->begin && w->end - w->begin <= VARIABLES_MAX)
		kfd_core_add(w->h->c, w->begin, w->end - w->begin);
	w->begin = m->begin;
	w->end = m->end;
	w->variables_end = is_file ? m->end : 0;
}

/* ------------------------------------------------------------------ its libraries ------------ */

static uint64_t auxv_value(const struct kfd_core_host *h, uint64_t type)
{
	return elf_auxv_find(h->auxv, h->auxv_size, type);
}

/* @return the address of the program's dynamic section; 0 if it has none. */
static uint64_t find_dynamic(const struct kfd_core_host *h)
{
	const uint64_t at = auxv_value(h, AT_PHDR), n = auxv_value(h, AT_PHNUM);
	uint64_t bias = 0, dynamic = 0;
	Elf64_Phdr p;

	for (uint64_t i = 0; i < n && i < HEADERS_MAX; i++) {
		if (memory_read_exact(&h->c->k->t.memory, at + i * sizeof(p), &p, sizeof(p)) < 0)
			return 0;
		if (p.p_type == PT_PHDR)
			bias = at - p.p_vaddr;
		else if (p.p_type == PT_DYNAMIC)
			dynamic = p.p_vaddr;
	}
	return dynamic ? dynamic + bias : 0;
}

/* @return the address of the loader's struct r_debug, as DT_DEBUG has it; 0 if there is none. */
static uint64_t find_r_debug(const struct kfd_core_host *h)
{
	const uint64_t at = find_dynamic(h);
	Elf64_Dyn d = { .d_tag = DT_NULL };

	for (uint64_t i = 0; at && i < DYNAMIC_MAX; i++) {
		if (memory_read_exact(&h->c->k->t.memory, at + i * sizeof(d), &d, sizeof(d)) < 0 ||
		    d.d_tag == DT_NULL)
			return 0;
		if (d.d_tag == DT_DEBUG)
			return d.d_un.d_ptr;
	}
	return 0;
}

/*
 * Add the loader's list of libraries (link.h), whose entries may be in any of its memory.  The
 * target can write the list, so its length is bounded, and a name ends where it is not readable.
 */
static void add_libraries(struct kfd_core_host *h)
{
	const struct memory *memory = &h->c->k->t.memory;
	const uint64_t at = find_r_debug(h);
	char name[PATH_MAX];
	struct r_debug r;
	struct link_map l;
	uint64_t next;
	ssize_t n;

	if (!at || memory_read_exact(memory, at, &r, sizeof(r)) < 0)
		return;
	kfd_core_add(h->c, at, sizeof(r));
	next = (uintptr_t)r.r_map;
	for (size_t i = 0; next && i < LIBRARIES_MAX; i++) {
		if (memory_read_exact(memory, next, &l, sizeof(l)) < 0)
			return;
		kfd_core_add(h->c, next, sizeof(l));
		n = memory_read(memory, (uintptr_t)l.l_name, name, sizeof(name));
		if (n > 0)
			kfd_core_add(h->c, (uintptr_t)l.l_name, strnlen(name, (size_t)n - 1) + 1);
		next = (uintptr_t)l.l_next;
	}
}

/*
 * Make the note NT_FILE: the number of files, the page size, for each file its begin, end and the
 * page in the file, then all names (elf(5)).
 */
static void pack_files(struct kfd_core_host *h)
{
	size_t size = 16 + 24 * h->n_files, at = size;
	uint8_t *b;

	for (size_t i = 0; i < h->n_files; i++)
		size += strlen(h->file[i].path) + 1;
	h->files = malloc(size);
	b = (uint8_t *)h->files;
	if (!b)
		return;
	pack_u64(b, h->n_files);
	pack_u64(b + 8, page_bytes());
	for (size_t i = 0; i < h->n_files; i++) {
		const struct host_file *f = &h->file[i];
		size_t length = strlen(f->path) + 1;

		pack_u64(b + 16 + 24 * i, f->begin);
		pack_u64(b + 24 + 24 * i, f->end);
		pack_u64(b + 32 + 24 * i, f->offset / page_bytes());
		memcpy(b + at, f->path, length);
		at += length;
	}
	h->files_size = size;
}

/* ------------------------------------------------------------------ notes -------------------- */

static void add_note(struct amdcore *core, const char *name, uint32_t type, const void *desc,
		     size_t size)
{
	if (size)
		core->notes[core->n_notes++] = (struct amdcore_note){ .name = name, .type = type,
								      .desc = desc,
								      .size = (uint32_t)size };
}

static void add_thread_notes(struct amdcore *core, const struct corefile_processor *p, const struct host_thread *t)
{
	add_note(core, "CORE", NT_PRSTATUS, &t->status, sizeof(t->status));
	add_note(core, "CORE", NT_PRFPREG, &t->floating, t->floating_size);
	for (size_t i = 0; i < p->n_sets; i++)
		add_note(core, "LINUX", p->sets[i], t->sets[i].bytes, t->sets[i].size);
}

/*
 * Make the notes.  A debugger begins with the first thread; the notes of the process follow those
 * of that thread, as in a core of the kernel.
 */
static int add_notes(struct kfd_core_host *h)
{
	struct amdcore *core = &h->c->core;
	const struct amdcore_note *others = core->notes;
	uint32_t n_others = core->n_notes;
	bool has_process = false;

	h->notes = calloc(NOTES_OF_PROCESS + h->n_threads * NOTES_PER_THREAD + n_others,
			  sizeof(*h->notes));
	if (!h->notes)
		return -ENOMEM;
	core->notes = h->notes;
	core->n_notes = 0;
	core->unified = true;
	core->machine = h->processor->elf;
	for (size_t i = 0; i < h->n_threads; i++) {
		if (!h->threads[i].ok)
			continue;
		add_thread_notes(core, h->processor, &h->threads[i]);
		if (has_process)
			continue;
		has_process = true;
		add_note(core, "CORE", NT_PRPSINFO, &h->process, sizeof(h->process));
		add_note(core, "CORE", NT_AUXV, h->auxv, h->auxv_size);
		add_note(core, "CORE", NT_FILE, h->files, h->files_size);
	}
	for (uint32_t i = 0; i < n_others; i++)
		core->notes[core->n_notes++] = others[i];
	return 0;
}

static void tell(const struct kfd_core_host *h, struct kfd_core_threads *ret)
{
	*ret = (struct kfd_core_threads){ .n_missed = (uint32_t)h->n_beyond,
					  .stopped_us = h->stopped_ns / 1000 };
	for (size_t i = 0; i < h->n_threads; i++) {
		ret->n += h->threads[i].ok;
		ret->n_missed += !h->threads[i].ok && !h->threads[i].gone;
	}
}

/* Say that all threads are missing: none of them may be looked at. */
static int tell_all_missed(struct kfd_core_host *h, struct kfd_core_threads *ret)
{
	if (!make_table(h))
		return -ENOMEM;
	list_threads(h);
	tell(h, ret);
	return 0;
}

int kfd_core_add_host(struct kfd_core *c, uint64_t deadline_ns, struct kfd_core_threads *ret)
{
	const struct corefile_processor *processor = corefile_processor_find(elf_own_machine());
	struct kfd_core_host *h = processor ? calloc(1, sizeof(*h)) : NULL;
	struct walk w = { .h = h };
	int r;

	if (!h)
		return processor ? -ENOMEM : -ENOTSUP;
	c->host = h;
	h->processor = processor;
	h->c = c;
	h->deadline_ns = deadline_ns;
	/*
	 * The registers of a process that protects itself may not be read (sandbox_worker()): its
	 * core has only the GPU's half.
	 */
	if (!c->k->t.is_own)
		return tell_all_missed(h, ret);
	r = visit_all(h);
	if (r < 0)
		return r;
	for (size_t i = 0; i < h->n_threads; i++)
		if (h->threads[i].stack_size)
			kfd_core_add_copy(c, h->threads[i].stack_at, h->threads[i].stack_size,
					  h->threads[i].stack);
	read_process(h);
	read_auxv(h);
	(void)mappings_read(c->k->t.maps_fd, on_mapping, &w);
	add_libraries(h);
	pack_files(h);
	tell(h, ret);
	return add_notes(h);
}

uint64_t kfd_core_estimate_host(struct kfd_core *c)
{
	struct kfd_core_host *h = calloc(1, sizeof(*h));
	struct walk w = { .h = h };
	uint64_t size = 0;

	c->host = h;
	if (!h)
		return 0;
	h->c = c;
	if (make_table(h))
		size = list_threads(h) * (sizeof(*h->threads) + COREFILE_AGENT_STACK_BYTES + page_bytes() +
					  COREFILE_SET_MAX);
	read_auxv(h);
	(void)mappings_read(c->k->t.maps_fd, on_mapping, &w);
	add_libraries(h);
	pack_files(h);
	return size + h->files_size + sizeof(h->process) + AUXV_MAX + page_bytes();
}

void kfd_core_host_free(struct kfd_core_host *h)
{
	if (!h)
		return;
	for (size_t i = 0; h->threads && i < h->n_threads; i++) {
		for (size_t k = 0; k < COREFILE_SETS_MAX; k++)
			free(h->threads[i].sets[k].bytes);
		free(h->threads[i].stack);
	}
	for (size_t i = 0; i < h->n_files; i++)
		free(h->file[i].path);
	free(h->file);
	free(h->beginnings);
	free(h->notes);
	free(h->threads);
	free(h->listed);
	free(h->auxv);
	free(h->files);
	free(h);
}
