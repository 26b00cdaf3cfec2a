/* SPDX-License-Identifier: MIT */
#include "hoststack/asyncio.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "hoststack/string.h"

/* Modules/_asynciomodule.c, struct _Py_AsyncioModuleDebugOffsets. */
#define TABLE_WORDS 13
#define PHDRS_MAX   64
/* Bytes of variables that are searched, and of each read. */
#define SEARCH_MAX  (UINT64_C(8) << 20)
#define CHUNK_WORDS 2048
/* Largest structures. */
#define TASK_MAX   1024
#define INTERP_MAX (1 << 20)
/* _PyThreadStateImpl: some 1 KiB, and of free-threaded builds 19 KiB, for each thread has its own heaps there. */
#define IMPL_MAX   (1 << 16)
#define SET_MAX	   1024
#define TRIES	   3
/* Bit of a type's flags: its objects are integers (Include/object.h). */
#define IS_LONG (UINT64_C(1) << 24)
/* Frames of a coroutine lie in it. */
#define OWNED_BY_GENERATOR 1
#define TAG_MASK	   UINT64_C(7)

/* ------------------------------------------------------------------ the table ---------------- */

static bool is_offset(uint64_t value, uint64_t size, uint64_t width)
{
	return value >= 8 && value % width == 0 && width <= size && value <= size - width;
}

/* Do these numbers fit each other?  @param ret  Set only then. */
static bool is_table(const uint64_t *w, const struct hoststack_layout *l, struct hoststack_asyncio *ret)
{
	const uint64_t size = w[0], name = w[1], waiters = w[2], is_task = w[3], has_set = w[4];
	const uint64_t coroutine = w[5], node = w[6];

	/* The order of members is that of struct TaskObj of 3.14 and 3.15. */
	if (size > TASK_MAX || size % 8 || !is_offset(waiters, size, 8) || !is_offset(coroutine, size, 8) ||
	    name != coroutine + 8 || !is_offset(node, size, 8) || node != name + 16 || node + 16 > size ||
	    has_set != is_task + 1 || is_task <= waiters || has_set >= coroutine)
		return false;
	if (w[7] > INTERP_MAX || !is_offset(w[8], w[7], 8) || w[9] > IMPL_MAX || w[9] < l->thread_size ||
	    w[10] < l->thread_size || !is_offset(w[10], w[9], 8) || w[11] != w[10] + 8 || !is_offset(w[12], w[9], 8) ||
	    w[12] <= w[11] || w[12] + 16 > w[9])
		return false;
	*ret = (struct hoststack_asyncio){
		.task_name = (uint32_t)name, .task_coroutine = (uint32_t)coroutine, .task_node = (uint32_t)node,
		.task_waiters = (uint32_t)waiters, .task_has_set = (uint32_t)has_set, .thread_running = (uint32_t)w[11],
		.thread_tasks = (uint32_t)w[12],
	};
	return true;
}

/* Search variables, some at a time; a table may lie across two of these. */
static int search(struct hoststack_memory *m, const struct hoststack_layout *l, uint64_t begin, uint64_t end,
		  struct hoststack_asyncio *ret)
{
	uint64_t words[CHUNK_WORDS];

	begin = (begin + 7) & ~UINT64_C(7);
	while (end > begin && end - begin >= TABLE_WORDS * 8) {
		size_t n = end - begin < sizeof(words) ? (size_t)(end - begin) / 8 : CHUNK_WORDS;
		int r = hoststack_read(m, begin, words, n * 8);

		if (r < 0)
			return r == -EFAULT ? -ENOENT : r;
		for (size_t i = 0; i + TABLE_WORDS <= n; i++)
			if (is_table(&words[i], l, ret))
				return 0;
		begin += (n - TABLE_WORDS + 1) * 8;
	}
	return -ENOENT;
}

int hoststack_asyncio_find(struct hoststack_memory *m, const struct hoststack_python *p, uint64_t base,
			   struct hoststack_asyncio *ret)
{
	Elf64_Phdr ph[PHDRS_MAX];
	Elf64_Ehdr eh;
	uint64_t bias = base, left = SEARCH_MAX;
	int r = !p->layout.generator_frame ? -ENOENT : hoststack_read(m, base, &eh, sizeof(eh));

	if (r == 0 && (memcmp(eh.e_ident, ELFMAG, SELFMAG) || eh.e_phnum > PHDRS_MAX ||
		       eh.e_phentsize != sizeof(ph[0])))
		return -ENOENT;
	if (r == 0)
		r = hoststack_read(m, base + eh.e_phoff, ph, eh.e_phnum * sizeof(ph[0]));
	if (r < 0)
		return r == -EFAULT ? -ENOENT : r;
	for (size_t i = 0; i < eh.e_phnum; i++)
		if (ph[i].p_type == PT_LOAD && ph[i].p_offset == 0)
			bias = base - ph[i].p_vaddr;
	r = -ENOENT;
	for (size_t i = 0; i < eh.e_phnum && r == -ENOENT; i++) {
		const uint64_t size = ph[i].p_filesz < left ? ph[i].p_filesz : left, begin = bias + ph[i].p_vaddr;

		if (ph[i].p_type != PT_LOAD || !(ph[i].p_flags & PF_W) || size > UINT64_MAX - begin)
			continue;
		left -= size;
		r = search(m, &p->layout, begin, begin + size, ret);
	}
	return r;
}

/* ------------------------------------------------------------------ one task ----------------- */

/* @return 0, -EBADMSG, -ENOMEM, what hoststack_read() returns. */
static int read_name(struct hoststack_reader *r, uint64_t address, char **ret)
{
	const struct hoststack_layout *l = &r->python->layout;
	uint64_t type, flags, tag;
	uint32_t digits[2] = { 0 };
	int e = hoststack_read_u64(r->memory, address + l->object_type, &type);

	if (e == 0 && type == r->python->str_type)
		return hoststack_string(r->memory, l, address, r->python->str_type, ret);
	/* Until somebody asks for the name it is a number; the two low bits of its tag are the sign. */
	if (e == 0)
		e = hoststack_read_u64(r->memory, type + l->type_flags, &flags);
	if (e == 0)
		e = hoststack_read_u64(r->memory, address + l->long_tag, &tag);
	if (e < 0)
		return e;
	if (!(flags & IS_LONG) || tag & 3 || !(tag >> 3) || tag >> 3 > 2)
		return -EBADMSG;
	e = hoststack_read(r->memory, address + l->long_digits, digits, 4 * (tag >> 3));
	if (e < 0)
		return e;
	/* Digits have 30 bits. */
	if (asprintf(ret, "Task-%llu", (unsigned long long)digits[0] + ((unsigned long long)digits[1] << 30)) < 0) {
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* Read a set of tasks.  @return 0, -EBADMSG, what hoststack_read() returns. */
static int read_set(struct hoststack_reader *r, uint64_t set, struct hoststack_task *t)
{
	const struct hoststack_layout *l = &r->python->layout;
	uint64_t table, mask, entry[2];
	int e = hoststack_read_u64(r->memory, set + l->set_table, &table);

	if (e == 0)
		e = hoststack_read_u64(r->memory, set + l->set_mask, &mask);
	if (e == 0 && mask >= SET_MAX)
		return -EBADMSG;
	/* An entry is a key and its hash; that of one that was removed is -1 (Objects/setobject.c). */
	for (uint64_t i = 0; e == 0 && i <= mask && !t->has_more_waiters; i++) {
		e = hoststack_read(r->memory, table + 16 * i, entry, sizeof(entry));
		if (e < 0 || !entry[0] || entry[1] == UINT64_MAX)
			continue;
		if (t->n_waiters < HOSTSTACK_WAITERS_MAX)
			t->waiters[t->n_waiters++] = entry[0];
		else
			t->has_more_waiters = true;
	}
	return e;
}

static int read_waiters(struct hoststack_reader *r, const struct hoststack_asyncio *a, struct hoststack_task *t)
{
	uint64_t waiter;
	uint8_t has_set;
	int e = hoststack_read_u64(r->memory, t->address + a->task_waiters, &waiter);

	if (e == 0)
		e = hoststack_read(r->memory, t->address + a->task_has_set, &has_set, 1);
	if (e < 0 || !waiter)
		return e;
	if (has_set)
		return read_set(r, waiter, t);
	t->waiters[t->n_waiters++] = waiter;
	return 0;
}

/* What a coroutine does (Include/internal/pycore_frame.h, enum _framestate). */
enum state { AWAITS, HAS_FRAME, HAS_NONE, NO_STATE };

static enum state state_of(unsigned minor, int8_t state)
{
	/* Of 3.14 from -3 on, of 3.15 from 0 on. */
	static const enum state of_14[] = { HAS_FRAME, HAS_FRAME, AWAITS,   HAS_FRAME,
					    HAS_NONE,  NO_STATE,  NO_STATE, HAS_NONE };
	static const enum state of_15[] = { HAS_FRAME, HAS_FRAME, AWAITS, AWAITS, HAS_FRAME, HAS_NONE };

	if (minor < 15)
		return state >= -3 && state <= 4 ? of_14[state + 3] : NO_STATE;
	return state >= 0 && state <= 5 ? of_15[state] : NO_STATE;
}

/* What it awaits lies on its stack, below the value that is sent to it (3.15 has one more word there). */
static int read_awaited(struct hoststack_reader *r, const uint8_t *frame, uint64_t type, uint64_t *ret)
{
	const struct hoststack_layout *l = &r->python->layout;
	const uint64_t stack = hoststack_number(frame, l->frame_stack, 8) & ~TAG_MASK;
	uint64_t awaited, awaited_type;
	int e = hoststack_read_u64(r->memory, stack - (l->minor < 15 ? 8 : 16), &awaited);

	*ret = 0;
	awaited &= ~TAG_MASK;
	if (e < 0 || !awaited)
		return e;
	e = hoststack_read_u64(r->memory, awaited + l->object_type, &awaited_type);
	/* A future, or another object that can be awaited, is the end. */
	if (e == 0 && awaited_type == type)
		*ret = awaited;
	return e;
}

/* Read one coroutine.  @param ret_next  What it awaits, if that is another one; 0. */
static int read_coroutine(struct hoststack_reader *r, uint64_t coroutine, struct hoststack_task *t, uint64_t *ret_next)
{
	const struct hoststack_layout *l = &r->python->layout;
	uint8_t frame[HOSTSTACK_FRAME_MAX];
	struct hoststack_frame f;
	enum state state;
	uint64_t type;
	int8_t raw;
	int e = hoststack_read_u64(r->memory, coroutine + l->object_type, &type);

	*ret_next = 0;
	if (e == 0)
		e = hoststack_read(r->memory, coroutine + l->generator_state, &raw, 1);
	if (e < 0)
		return e;
	state = state_of(l->minor, raw);
	/* What another compiler has made has another structure. */
	if (state == NO_STATE)
		return -EBADMSG;
	if (state == HAS_NONE)
		return 0;
	e = hoststack_read(r->memory, coroutine + l->generator_frame, frame, l->frame_size);
	if (e < 0)
		return e;
	f = (struct hoststack_frame){ .frame = coroutine + l->generator_frame,
				      .code = hoststack_number(frame, l->frame_code, 8) & ~TAG_MASK,
				      .at = hoststack_number(frame, l->frame_at, 8) };
	if (l->frame_tlbc && l->free_threaded)
		f.tlbc = hoststack_number(frame, l->frame_tlbc, 4);
	if (frame[l->frame_owner] != OWNED_BY_GENERATOR && state == AWAITS)
		return -EBADMSG;
	e = hoststack_codes_name(&r->codes, r->memory, r->python, &f, &t->places[t->n]);
	if (e < 0)
		return e;
	t->n++;
	return state == AWAITS ? read_awaited(r, frame, type, ret_next) : 0;
}

static void reverse(struct hoststack_task *t)
{
	for (size_t i = 0; i < t->n / 2; i++) {
		const struct hoststack_place p = t->places[i];

		t->places[i] = t->places[t->n - 1 - i];
		t->places[t->n - 1 - i] = p;
	}
}

static int read_chain(struct hoststack_reader *r, const struct hoststack_asyncio *a, struct hoststack_task *t)
{
	struct hoststack_circle circle = { 0 };
	uint64_t coroutine = 0;
	int e = hoststack_read_u64(r->memory, t->address + a->task_coroutine, &coroutine);

	coroutine &= ~TAG_MASK;
	while (e == 0 && coroutine) {
		if (t->n == HOSTSTACK_AWAITS_MAX || hoststack_circle_closes(&circle, coroutine))
			e = -E2BIG;
		else
			e = read_coroutine(r, coroutine, t, &coroutine);
	}
	reverse(t);
	return e;
}

/* Most tasks have few coroutines, and there may be thousands. */
static void shrink(struct hoststack_task *t)
{
	struct hoststack_place *places = reallocarray(t->places, t->n + 1, sizeof(*places));

	if (places)
		t->places = places;
}

/* @return 0, or what ends everything. */
static int read_task(struct hoststack_reader *r, const struct hoststack_asyncio *a, struct hoststack_task *t)
{
	uint64_t name;
	int e;

	t->places = calloc(HOSTSTACK_AWAITS_MAX, sizeof(*t->places));
	if (!t->places)
		return -ENOMEM;
	e = hoststack_read_u64(r->memory, t->address + a->task_name, &name);
	if (e == 0)
		e = read_name(r, name & ~TAG_MASK, &t->name);
	if (e == 0)
		e = read_waiters(r, a, t);
	if (e == 0)
		e = read_chain(r, a, t);
	t->is_cut = e < 0;
	shrink(t);
	return hoststack_is_over(e) ? e : 0;
}

/* ------------------------------------------------------------------ a thread's --------------- */

static int add(struct hoststack_reader *r, const struct hoststack_asyncio *a, uint64_t address, uint64_t running,
	       struct hoststack_tasks *t)
{
	if (vec_reserve(&t->list, t->n, 1, &t->capacity, sizeof(*t->list)) < 0)
		return -ENOMEM;
	t->list[t->n] = (struct hoststack_task){ .address = address, .is_running = address == running };
	return read_task(r, a, &t->list[t->n++]);
}

static int read_once(struct hoststack_reader *r, const struct hoststack_asyncio *a,
		     const struct hoststack_thread *thread, struct hoststack_tasks *t)
{
	const uint64_t head = thread->state + a->thread_tasks;
	uint64_t node[2], before = head, running;
	int e = hoststack_read_u64(r->memory, thread->state + a->thread_running, &running);

	if (e == 0)
		e = hoststack_read(r->memory, head, node, sizeof(node));
	/* A list of two directions: each node must know the one before it. */
	while (e == 0 && node[0] && node[0] != head) {
		const uint64_t at = node[0];

		e = hoststack_read(r->memory, at, node, sizeof(node));
		if (e == 0 && (node[1] != before || t->n == HOSTSTACK_TASKS_MAX))
			e = -EBADMSG;
		if (e == 0)
			e = add(r, a, at - a->task_node, running, t);
		before = at;
	}
	t->is_cut = e < 0;
	return hoststack_is_over(e) ? e : 0;
}

int hoststack_tasks_read(struct hoststack_reader *r, const struct hoststack_asyncio *a,
			 const struct hoststack_thread *thread, struct hoststack_tasks *ret)
{
	int e = 0;

	*ret = (struct hoststack_tasks){ 0 };
	for (int i = 0; i < TRIES && e == 0 && !ret->is_certain; i++) {
		const bool rests = r->watch.rests(r->watch.ctx, thread->tid);
		struct hoststack_tasks found = { 0 };

		e = read_once(r, a, thread, &found);
		found.is_certain = rests && r->watch.rested(r->watch.ctx, thread->tid);
		/* A list that was read to its end is kept when a later try is not. */
		if (e < 0 && i) {
			hoststack_tasks_free(&found);
			break;
		}
		hoststack_tasks_free(ret);
		*ret = found;
	}
	return e;
}

void hoststack_tasks_free(struct hoststack_tasks *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->list[i].name);
		free(t->list[i].places);
	}
	free(t->list);
	*t = (struct hoststack_tasks){ 0 };
}
