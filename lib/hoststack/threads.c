/* SPDX-License-Identifier: MIT */
#include "hoststack/threads.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"

#define PTHREAD_BYTES 1024

static int add(struct hoststack_threads *t, const struct hoststack_thread *thread)
{
	if (t->n >= HOSTSTACK_THREADS_MAX) {
		t->is_cut = true;
		return -E2BIG;
	}
	if (vec_reserve(&t->list, t->n, 1, &t->capacity, sizeof(*t->list)) < 0)
		return -ENOMEM;
	t->list[t->n++] = *thread;
	return 0;
}

/* Follow one interpreter's list; one that makes no sense is cut off there. */
static int list_interpreter(struct hoststack_memory *m, const struct hoststack_python *p, uint64_t interp,
			    struct hoststack_threads *t)
{
	const struct hoststack_layout *l = &p->layout;
	struct hoststack_circle circle = { 0 };
	uint8_t bytes[HOSTSTACK_STATE_MAX];
	uint64_t at, id;
	int r = hoststack_read_u64(m, interp + l->interp_id, &id);

	if (r == 0)
		r = hoststack_read_u64(m, interp + l->interp_threads, &at);
	while (r == 0 && at) {
		struct hoststack_thread thread = { .state = at, .interpreter = (int64_t)id };

		r = hoststack_circle_closes(&circle, at) ? -ELOOP : hoststack_read(m, at, bytes, l->thread_size);
		if (r == 0 && hoststack_number(bytes, l->thread_interp, 8) != interp)
			r = -EBADMSG;
		if (r < 0)
			break;
		thread.pthread = hoststack_number(bytes, l->thread_id, 8);
		if (l->thread_native_id)
			thread.tid = hoststack_number(bytes, l->thread_native_id, 8);
		at = hoststack_number(bytes, l->thread_next, 8);
		r = add(t, &thread);
	}
	return r;
}

/*
 * Is there a lock at all?  PYTHON_GIL=1, or a module that was not made to run without it, has a free-threaded
 * interpreter use it (CPython's Python/ceval_gil.c, take_gil()).
 */
static int read_enabled(struct hoststack_memory *m, const struct hoststack_layout *l, uint64_t lock, bool *ret)
{
	uint32_t enabled = 0;
	int r = 0;

	if (l->lock_locked)
		r = hoststack_read(m, lock + l->lock_enabled, &enabled, sizeof(enabled));
	*ret = enabled;
	return r;
}

/* @param t  What is found is added to it. */
static int read_holder(struct hoststack_memory *m, const struct hoststack_python *p, uint64_t interp,
		       struct hoststack_threads *t)
{
	const struct hoststack_layout *l = &p->layout;
	uint64_t holder_at = p->runtime + l->gil_holder, locked_at = p->runtime + l->gil_locked, lock = 0, holder = 0;
	uint32_t locked = 0;
	bool enabled = true;
	int r = 0;

	if (l->gil) {
		r = hoststack_read_u64(m, interp + l->gil, &lock);
		holder_at = lock + l->lock_holder;
		locked_at = lock + l->lock_locked;
	}
	if (r == 0 && l->free_threaded)
		r = read_enabled(m, l, lock, &enabled);
	if (r == 0 && !enabled)
		return 0;
	if (r == 0)
		r = hoststack_read(m, locked_at, &locked, sizeof(locked));
	if (r == 0)
		r = hoststack_read_u64(m, holder_at, &holder);
	t->has_lock |= r == 0;
	/* The head of the list is the newest; the main one, which comes last, is what is told. */
	if (r == 0 && locked == 1 && holder)
		t->holder = holder;
	return r == -EFAULT ? 0 : r;
}

int hoststack_threads_list(struct hoststack_memory *m, const struct hoststack_python *p,
			   struct hoststack_threads *ret)
{
	struct hoststack_circle circle = { 0 };
	struct hoststack_threads t = { 0 };
	uint64_t interp = 0;
	int r = hoststack_read_u64(m, p->runtime + p->layout.interpreters, &interp);

	while (r == 0 && interp) {
		if (t.interpreters++ >= HOSTSTACK_INTERPRETERS_MAX || hoststack_circle_closes(&circle, interp)) {
			r = -ELOOP;
			break;
		}
		r = list_interpreter(m, p, interp, &t);
		if (!hoststack_is_over(r))
			(void)read_holder(m, p, interp, &t);
		if (r == 0)
			r = hoststack_read_u64(m, interp + p->layout.interp_next, &interp);
	}
	if (hoststack_is_over(r) || (r < 0 && !t.n)) {
		hoststack_threads_free(&t);
		return hoststack_is_over(r) ? r : -EBADMSG;
	}
	t.is_cut |= r < 0;
	*ret = t;
	return 0;
}

void hoststack_threads_free(struct hoststack_threads *t)
{
	free(t->list);
	*t = (struct hoststack_threads){ 0 };
}

/* ------------------------------------------------------------------ kernel ids --------------- */

static int by_number(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Does that offset give each thread an id of the process, and no two the same? */
static bool is_tid_at(const uint8_t (*blocks)[PTHREAD_BYTES], size_t offset, size_t n, const uint32_t *tids,
		      size_t n_tids, uint32_t *scratch)
{
	for (size_t i = 0; i < n; i++) {
		scratch[i] = (uint32_t)hoststack_number(blocks[i], offset, 4);
		if (!bsearch(&scratch[i], tids, n_tids, sizeof(*tids), by_number))
			return false;
	}
	qsort(scratch, n, sizeof(*scratch), by_number);
	for (size_t i = 1; i < n; i++)
		if (scratch[i] == scratch[i - 1])
			return false;
	return true;
}

static bool is_first_of(const struct hoststack_threads *t, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (t->list[k].pthread == t->list[i].pthread)
			return false;
	return true;
}

int hoststack_find_tids(struct hoststack_memory *m, struct hoststack_threads *t, const uint32_t *tids, size_t n_tids)
{
	/* A sample is enough to find the offset, and all are read afterwards. */
	enum { SAMPLE = 64 };
	auto_free uint8_t (*blocks)[PTHREAD_BYTES] = calloc(SAMPLE, sizeof(*blocks));
	uint32_t scratch[SAMPLE], tid;
	size_t n = 0, offset;
	int r = 0;

	if (!blocks)
		return -ENOMEM;
	for (size_t i = 0; i < t->n && n < SAMPLE; i++) {
		if (!is_first_of(t, i))
			continue;
		r = hoststack_read(m, t->list[i].pthread, blocks[n], sizeof(blocks[n]));
		if (hoststack_is_over(r))
			return r;
		n += r == 0;
	}
	for (offset = 0; offset < PTHREAD_BYTES; offset += 4)
		if (n && is_tid_at((const uint8_t(*)[PTHREAD_BYTES])blocks, offset, n, tids, n_tids, scratch))
			break;
	if (offset >= PTHREAD_BYTES)
		return -ENOENT;
	for (size_t i = 0; i < t->n; i++) {
		r = hoststack_read(m, t->list[i].pthread + offset, &tid, sizeof(tid));
		if (hoststack_is_over(r))
			return r;
		t->list[i].tid = r == 0 && bsearch(&tid, tids, n_tids, sizeof(*tids), by_number) ? tid : 0;
	}
	return 0;
}
