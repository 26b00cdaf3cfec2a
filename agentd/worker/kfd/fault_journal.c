/* SPDX-License-Identifier: MIT */
#include "agentd/worker/kfd/fault_journal.h"

#include <sys/mman.h>

struct kfd_journal *kfd_journal_open(void)
{
	void *p = mmap(NULL, sizeof(struct kfd_journal), PROT_READ | PROT_WRITE, MAP_SHARED,
		       IPC_FD_UNDO, 0);

	return p == MAP_FAILED ? NULL : p;
}

void kfd_journal_close(struct kfd_journal *l)
{
	if (l)
		munmap(l, sizeof(*l));
}

static struct kfd_journal_entry *find(struct kfd_journal *l, bool is_queue, uint32_t id)
{
	for (size_t i = 0; i < KFD_JOURNAL_ENTRIES; i++)
		if (l->entries[i].exceptions && l->entries[i].is_queue == is_queue &&
		    l->entries[i].id == id)
			return &l->entries[i];
	return NULL;
}

static struct kfd_journal_entry *find_free(struct kfd_journal *l)
{
	for (size_t i = 0; i < KFD_JOURNAL_ENTRIES; i++)
		if (!l->entries[i].exceptions)
			return &l->entries[i];
	return NULL;
}

/* The worker may die between any two stores, so an entry must be complete before it counts. */
static void publish(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_SEQ_CST);
}

/* The magic comes last: the monitor takes a journal without it for one that owes nothing. */
void kfd_journal_append(struct kfd_journal *l, bool is_queue, uint32_t id, uint64_t exceptions)
{
	struct kfd_journal_entry *e;

	if (!l || !exceptions)
		return;
	e = find(l, is_queue, id);
	if (!e) {
		e = find_free(l);
		if (!e)
			return;
		e->id = id;
		e->is_queue = is_queue;
	}
	publish(&e->exceptions, e->exceptions | exceptions);
	publish(&l->magic, KFD_JOURNAL_MAGIC);
}

static bool is_empty(const struct kfd_journal *l)
{
	for (size_t i = 0; i < KFD_JOURNAL_ENTRIES; i++)
		if (l->entries[i].exceptions)
			return false;
	return true;
}

void kfd_journal_erase(struct kfd_journal *l, bool is_queue, uint32_t id, uint64_t exceptions)
{
	struct kfd_journal_entry *e = l ? find(l, is_queue, id) : NULL;

	if (!e)
		return;
	publish(&e->exceptions, e->exceptions & ~exceptions);
	if (is_empty(l))
		publish(&l->magic, 0);
}

void kfd_journal_answered(struct kfd_journal *l)
{
	publish(&l->answer, 0);
}
