/* SPDX-License-Identifier: MIT */
#include "corefile/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reader.h"

/* Offsets in struct elf_prpsinfo of 64-bit processes, and its size. */
#define PRPSINFO_UID   16u
#define PRPSINFO_PID   24u
#define PRPSINFO_FNAME 40u
#define PRPSINFO_SIZE  136u
/* The same of struct elf_prstatus; behind its registers are a number and padding. */
#define PRSTATUS_PID	   32u
#define PRSTATUS_REGISTERS 112u
#define PRSTATUS_TAIL	   8u
/* Bytes of a mapping in NT_FILE, and those in front of the first. */
#define FILE_ENTRY 24u
#define FILE_HEAD  16u

int corefile_process_read(const void *note, size_t size, struct corefile_process *ret)
{
	struct reader r;

	if (size < PRPSINFO_SIZE)
		return -EBADMSG;
	*ret = (struct corefile_process){ 0 };
	reader_init(&r, note, size);
	reader_seek(&r, PRPSINFO_UID);
	ret->uid = reader_u32(&r);
	reader_seek(&r, PRPSINFO_PID);
	ret->pid = reader_u32(&r);
	memcpy(ret->comm, (const char *)note + PRPSINFO_FNAME, sizeof(ret->comm) - 1);
	return 0;
}

int corefile_thread_read(const struct corefile_processor *processor, const void *note, size_t size,
			 struct corefile_thread *ret)
{
	struct reader r;

	if (size < PRSTATUS_REGISTERS + 8u * processor->n_words + PRSTATUS_TAIL)
		return -EBADMSG;
	*ret = (struct corefile_thread){ 0 };
	reader_init(&r, note, size);
	reader_seek(&r, PRSTATUS_PID);
	ret->tid = reader_u32(&r);
	reader_seek(&r, PRSTATUS_REGISTERS);
	for (size_t i = 0; i < processor->n_words; i++)
		ret->registers[i] = reader_u64(&r);
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct corefile_mapping *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* Read one mapping.  @param names  What is left of the names; each mapping has one. */
static int take(struct reader *r, uint64_t page, const char **names, size_t *left, struct corefile_mapping *ret)
{
	size_t length = strnlen(*names, *left);
	uint64_t pages;

	if (length == *left)
		return -EBADMSG;
	ret->begin = reader_u64(r);
	ret->end = reader_u64(r);
	pages = reader_u64(r);
	ret->path = *names;
	*names += length + 1;
	*left -= length + 1;
	if (ret->begin >= ret->end || __builtin_mul_overflow(pages, page, &ret->offset) ||
	    ret->end - ret->begin > UINT64_MAX - ret->offset)
		return 0;
	return 1;
}

int corefile_mappings_read(const void *note, size_t size, struct corefile_mappings *ret)
{
	struct corefile_mapping *list;
	uint64_t n, page;
	const char *names;
	size_t left, n_taken = 0;
	struct reader r;
	int more = 1;

	reader_init(&r, note, size);
	n = reader_u64(&r);
	page = reader_u64(&r);
	if (size < FILE_HEAD || n > (size - FILE_HEAD) / FILE_ENTRY)
		return -EBADMSG;
	names = (const char *)note + FILE_HEAD + n * FILE_ENTRY;
	left = size - FILE_HEAD - n * FILE_ENTRY;
	list = calloc(n + 1, sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (uint64_t i = 0; i < n && more >= 0; i++) {
		more = take(&r, page, &names, &left, &list[n_taken]);
		n_taken += more > 0;
	}
	if (more < 0) {
		free(list);
		return more;
	}
	if (n_taken)
		qsort(list, n_taken, sizeof(*list), by_address);
	*ret = (struct corefile_mappings){ list, n_taken };
	return 0;
}
