/* SPDX-License-Identifier: MIT */
#include "corefile/cuda_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "corefile/cuda_walk.h"
#include "corefile/elf_write.h"
#include "corefile/pack.h"
#include "corefile/sink.h"

#define RECORD_MAX 136
#define STRTAB	   ".strtab"
#define SHSTRTAB   ".shstrtab"

/* A section that turned out shorter than planned. */
struct cut {
	uint32_t section;
	uint64_t size;
};

struct writer {
	struct cuda_walk walk; /* First: visitors get this. */
	const struct cudacore_memory **memory;
	const struct corefile_source *source;
	struct corefile_sink *sink;
	struct corefile_problems *unread;

	/* The plan. */
	uint64_t part_at[CUDA_PART_COUNT + 1];
	struct out strings;
	uint64_t names_size;
	struct corefile_elf_header header;

	/* Where the walk in progress has arrived. */
	enum cuda_part part;
	uint64_t at[CUDA_PART_COUNT];
	uint64_t string_at, name_at;
	struct cut *cuts;
	size_t n_cuts, next_cut;
};

static uint64_t align_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

static struct writer *writer_of(struct cuda_walk *w)
{
	return (struct writer *)w;
}

static const char *row_string(const void *row, const struct cuda_field *f)
{
	const char *s;

	memcpy(&s, (const char *)row + f->member, sizeof(s));
	return s;
}

static int walk(struct writer *w, int (*visit)(struct cuda_walk *w, const struct cuda_section *s))
{
	memcpy(w->at, w->part_at, sizeof(w->at));
	w->walk.visit = visit;
	return cuda_walk(&w->walk);
}

/* Offset of a section; each walk meets the sections of a part in the same order. */
static uint64_t place(struct writer *w, const struct cuda_section *s)
{
	uint64_t at = align_up(w->at[s->part], s->align);

	w->at[s->part] = at + s->size;
	return at;
}

static enum cudacore_table table_of(const struct cuda_section *s)
{
	return (enum cudacore_table)(s->table - cuda_tables);
}

static void plan_strings(struct writer *w, const struct cuda_section *s, const void *row)
{
	for (const struct cuda_field *f = s->table->fields; f->count; f++) {
		const char *string;

		if (f->kind != CUDA_STRING || f->since > w->walk.layout)
			continue;
		string = row_string(row, f);
		if (string)
			out_bytes(&w->strings, string, strlen(string) + 1);
	}
}

static int plan_section(struct cuda_walk *walk, const struct cuda_section *s)
{
	struct writer *w = writer_of(walk);

	place(w, s);
	w->names_size += strlen(s->name) + walk->suffix_size + 1;
	for (uint32_t i = 0; s->table && i < s->n; i++)
		plan_strings(w, s, cuda_row(walk->core, table_of(s), s->first + i));
	return 0;
}

/* Everything about the file but its bytes. */
static int plan(struct writer *w)
{
	uint64_t at = sizeof(Elf64_Ehdr);

	/* Lengths of the parts first: each begins at 0 as long as part_at is zero. */
	out_bytes(&w->strings, "", 1);
	w->names_size = 1;
	walk(w, plan_section);
	for (unsigned p = 0; p < CUDA_PART_COUNT; p++) {
		at = align_up(at, p == CUDA_PART_BULK ? 4096 : 8);
		w->part_at[p] = at;
		at += w->at[p];
	}
	w->part_at[CUDA_PART_COUNT] = at;
	w->names_size += sizeof(STRTAB) + sizeof(SHSTRTAB);
	w->header = (struct corefile_elf_header){
		.osabi = CUDA_ELFOSABI, .abi_version = CUDA_ABI_VERSION,
		.type = ET_CORE, .machine = CUDA_EM_CUDA,
		.sections_at = align_up(at + w->strings.size + w->names_size, 8),
		.n_sections = w->walk.number + 3, .names = w->walk.number + 2,
	};
	return out_error(&w->strings);
}

static uint64_t file_size(const struct writer *w)
{
	return w->header.sections_at + (uint64_t)w->header.n_sections * sizeof(Elf64_Shdr);
}

/* Strings lie in the order in which their rows are met. */
static void put_strings(struct writer *w, const struct cuda_table *t, const void *row, uint8_t *to)
{
	for (const struct cuda_field *f = t->fields; f->count; f++) {
		const char *string;

		if (f->kind != CUDA_STRING || f->since > w->walk.layout)
			continue;
		string = row_string(row, f);
		pack_u64(to + f->at, string ? w->string_at : 0);
		if (string)
			w->string_at += strlen(string) + 1;
	}
}

static void put_rows(struct writer *w, const struct cuda_section *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const void *row = cuda_row(w->walk.core, table_of(s), s->first + i);
		uint8_t record[RECORD_MAX] = { 0 };

		cuda_encode(s->table, w->walk.layout, row, record);
		put_strings(w, s->table, row, record);
		corefile_sink_write(w->sink, record, s->entry_size);
	}
}

static int cut_add(struct writer *w, uint32_t section, uint64_t size)
{
	struct cut *grown = reallocarray(w->cuts, w->n_cuts + 1, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	w->cuts = grown;
	w->cuts[w->n_cuts++] = (struct cut){ section, size };
	return 0;
}

static int put_blob(struct writer *w, const struct cuda_section *s)
{
	uint64_t got = corefile_sink_blob(w->sink, s->blob, w->source);

	if (got == s->size || corefile_sink_failed(w->sink))
		return 0;
	corefile_problem_add(w->unread, s->number, corefile_sink_position(w->sink) - s->size,
			     "%s%.*s: %llu of %llu bytes could be read", s->name,
			     (int)w->walk.suffix_size, w->walk.suffix, (unsigned long long)got,
			     (unsigned long long)s->size);
	return cut_add(w, s->number, got);
}

static int put_memory(struct writer *w, const struct cuda_section *s)
{
	uint64_t before = 0;
	int r = 0;

	for (uint32_t i = 0; i < s->n && r == 0; i++) {
		const struct cudacore_memory *m = w->memory[s->first + i];
		uint64_t got = corefile_sink_blob(w->sink, &m->blob, w->source);

		if (corefile_sink_failed(w->sink))
			break;
		if (got < m->blob.size) {
			corefile_problem_add(w->unread, s->number,
					     corefile_sink_position(w->sink) - m->blob.size,
					     "memory at 0x%llx: %llu of %llu bytes could be read",
					     (unsigned long long)m->address,
					     (unsigned long long)got,
					     (unsigned long long)m->blob.size);
			if (i == s->n - 1)
				r = cut_add(w, s->number, before + got);
		}
		before += m->blob.size;
	}
	return r;
}

static int put_content(struct cuda_walk *walk, const struct cuda_section *s)
{
	struct writer *w = writer_of(walk);
	uint64_t at = place(w, s);
	int r = 0;

	if (s->part != w->part)
		return 0;
	corefile_sink_pad(w->sink, at);
	if (s->table)
		put_rows(w, s);
	else if (s->blob)
		r = put_blob(w, s);
	else
		r = put_memory(w, s);
	return r < 0 || !corefile_sink_failed(w->sink) ? r : -EIO;
}

static int put_name(struct cuda_walk *walk, const struct cuda_section *s)
{
	struct writer *w = writer_of(walk);

	corefile_sink_write(w->sink, s->name, strlen(s->name));
	corefile_sink_write(w->sink, walk->suffix, walk->suffix_size);
	corefile_sink_write(w->sink, "", 1);
	return corefile_sink_failed(w->sink) ? -EIO : 0;
}

static int put_section(struct cuda_walk *walk, const struct cuda_section *s)
{
	struct writer *w = writer_of(walk);
	Elf64_Shdr section = {
		.sh_name = (uint32_t)w->name_at, .sh_type = s->type, .sh_addr = s->address,
		.sh_offset = place(w, s), .sh_size = s->size, .sh_link = s->link,
		.sh_info = s->info, .sh_addralign = s->align, .sh_entsize = s->entry_size,
	};

	w->name_at += strlen(s->name) + walk->suffix_size + 1;
	if (w->next_cut < w->n_cuts && w->cuts[w->next_cut].section == s->number)
		section.sh_size = w->cuts[w->next_cut++].size;
	corefile_elf_put_section(w->sink, &section);
	return corefile_sink_failed(w->sink) ? -EIO : 0;
}

static void put_string_section(struct writer *w, uint64_t at, uint64_t size, uint64_t name)
{
	corefile_elf_put_section(w->sink, &(Elf64_Shdr){ .sh_name = (uint32_t)name,
							 .sh_type = SHT_STRTAB, .sh_offset = at,
							 .sh_size = size, .sh_addralign = 1 });
}

static int by_section(const void *a, const void *b)
{
	const struct cut *x = a, *y = b;

	return x->section < y->section ? -1 : x->section > y->section;
}

static int put_section_table(struct writer *w)
{
	uint64_t strings_at = w->part_at[CUDA_PART_COUNT];
	int r;

	/* Found part by part, needed number by number. */
	if (w->n_cuts)
		qsort(w->cuts, w->n_cuts, sizeof(*w->cuts), by_section);
	corefile_elf_put_section0(w->sink, &w->header);
	w->name_at = 1;
	r = walk(w, put_section);
	if (r < 0)
		return r;
	put_string_section(w, strings_at, w->strings.size, w->name_at);
	put_string_section(w, strings_at + w->strings.size, w->names_size,
			   w->name_at + sizeof(STRTAB));
	return 0;
}

static int put_file(struct writer *w)
{
	int r = 0;

	corefile_elf_put_header(w->sink, &w->header);
	w->string_at = 1;
	for (w->part = 0; w->part < CUDA_PART_COUNT && r == 0; w->part++)
		r = walk(w, put_content);
	if (r < 0)
		return r;
	corefile_sink_pad(w->sink, w->part_at[CUDA_PART_COUNT]);
	corefile_sink_write(w->sink, w->strings.data, w->strings.size);
	corefile_sink_write(w->sink, "", 1);
	r = walk(w, put_name);
	if (r < 0)
		return r;
	corefile_sink_write(w->sink, STRTAB, sizeof(STRTAB));
	corefile_sink_write(w->sink, SHSTRTAB, sizeof(SHSTRTAB));
	corefile_sink_pad(w->sink, w->header.sections_at);
	return put_section_table(w);
}

static int by_address(const void *a, const void *b)
{
	const struct cudacore_memory *x = *(void *const *)a, *y = *(void *const *)b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static int sort_memory(struct writer *w, struct corefile_problem *error)
{
	const struct cudacore *c = w->walk.core;

	w->memory = calloc(c->n_memory ? c->n_memory : 1, sizeof(*w->memory));
	if (!w->memory)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_memory; i++)
		w->memory[i] = &c->memory[i];
	qsort(w->memory, c->n_memory, sizeof(*w->memory), by_address);
	for (uint32_t i = 0; i < c->n_memory; i++) {
		const struct cudacore_memory *m = w->memory[i];
		uint64_t room = i + 1 < c->n_memory ? w->memory[i + 1]->address : UINT64_MAX;

		if (m->blob.size > room - m->address) {
			corefile_problem_set(error, COREFILE_NO_SECTION, (uint64_t)(m - c->memory),
					     "memory at 0x%llx runs into what follows",
					     (unsigned long long)m->address);
			return -EINVAL;
		}
	}
	w->walk.memory = w->memory;
	return 0;
}

static void writer_deinit(struct writer *w)
{
	corefile_sink_destroy(w->sink);
	out_deinit(&w->strings);
	free(w->memory);
	free(w->cuts);
}

static int writer_init(struct writer *w, const struct cudacore *c, enum cudacore_layout layout,
		       struct corefile_problem *error)
{
	int r;

	*w = (struct writer){ .walk = { .core = c, .layout = layout } };
	if (layout == CUDACORE_LAYOUT_DEFAULT)
		w->walk.layout = CUDACORE_LAYOUT_R575;
	out_init(&w->strings, 0);
	r = sort_memory(w, error);
	return r < 0 ? r : plan(w);
}

int cudacore_size(const struct cudacore *c, enum cudacore_layout layout, uint64_t *ret_bytes)
{
	__attribute__((cleanup(writer_deinit))) struct writer w;
	int r = writer_init(&w, c, layout, NULL);

	if (r == 0)
		*ret_bytes = file_size(&w);
	return r;
}

static int write_all(struct writer *w, const struct cudacore_write_options *o, int fd)
{
	struct corefile_sink_options options = { .zstd = o->zstd, .total = file_size(w),
						 .progress = o->progress, .arg = o->arg };
	int r = corefile_sink_create(fd, &options, &w->sink), end;

	if (r < 0)
		return r;
	w->source = o->source;
	r = put_file(w);
	end = corefile_sink_finish(w->sink);
	return end < 0 ? end : r;
}

int cudacore_write(const struct cudacore *c, const struct cudacore_write_options *o, int fd,
		   struct cudacore_written *ret, struct corefile_problem *error)
{
	__attribute__((cleanup(writer_deinit))) struct writer w = { 0 };
	struct corefile_problem none = { .section = COREFILE_NO_SECTION };
	struct cudacore_written written = { 0 };
	int r;

	if (!error)
		error = &none;
	*error = none;
	r = cudacore_check(c, error);
	if (r == 0)
		r = writer_init(&w, c, o->layout, error);
	if (r == 0) {
		written.bytes = file_size(&w);
		written.sections = w.header.n_sections;
		w.unread = &written.unread;
		r = write_all(&w, o, fd);
	}
	if (r < 0 && !error->text[0])
		corefile_problem_set(error, COREFILE_NO_SECTION, 0, "cannot write the core: %s",
				     strerror(-r));
	if (ret)
		*ret = written;
	else
		corefile_problems_deinit(&written.unread);
	return r;
}
