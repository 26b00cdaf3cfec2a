/* SPDX-License-Identifier: MIT */
/* One walk over the core makes all that is not at hand: tables, names, section headers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "corefile/cuda_walk.h"
#include "corefile/cuda_write.h"
#include "corefile/elf_write.h"
#include "corefile/pack.h"

#define STRTAB	   ".strtab"
#define SHSTRTAB   ".shstrtab"
#define PAGE_BYTES 4096u
#define HUGE_BYTES ((size_t)2 << 20)
/* Of most sections, with its end. */
#define NAME_BYTES 44u
/* Until all parts are known, offsets of sections are those in their part, with its number on top. */
#define PART_SHIFT 62u
#define PART_MAX   (UINT64_C(1) << 61)
#define IN_PART(v) ((v) & ((UINT64_C(1) << PART_SHIFT) - 1))

/* Bytes that are made; what take() gives is valid until the next one. */
struct buffer {
	uint8_t *data;
	size_t size, capacity;
};

/* A run of bytes of the file.  There are a million where none lie together. */
struct extent {
	uint64_t at, size;
	union {
		const uint8_t *data;
		uint64_t key;
	};
	uint32_t section; /* Which ends with it. */
	bool fetched;
};

struct extents {
	struct extent *list;
	size_t n, capacity;
};

struct cudacore_image {
	struct buffer head; /* ELF header and all tables. */
	struct buffer strings, names, sections;
	struct extents all; /* In the order of the file. */
	const struct corefile_source *source;
	uint64_t size;
	uint32_t n_sections;
};

struct builder {
	struct cuda_walk walk; /* First: visitors get this. */
	struct cudacore_image *image;
	const struct cudacore_memory **memory;
	uint64_t size[CUDA_PART_COUNT];
	struct extents bulk; /* Comes behind the registers. */
};

/* To a power of 2. */
static uint64_t align_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) & ~(to - 1);
}

/* ------------------------------------------------------------------ memory ------------------- */

/* Room for what is expected, in large pages: to have it page by page takes longer than to fill it. */
static int reserve(struct buffer *b, uint64_t size)
{
	if (size < HUGE_BYTES)
		return 0;
	size = align_up(size, HUGE_BYTES);
	b->data = aligned_alloc(HUGE_BYTES, size);
	if (!b->data)
		return -ENOMEM;
	b->capacity = size;
	(void)madvise(b->data, size, MADV_HUGEPAGE);
	return 0;
}

static uint8_t *take(struct buffer *b, size_t size)
{
	uint8_t *at;

	if (size > b->capacity - b->size) {
		size_t capacity = 2 * (b->size + size) + PAGE_BYTES;
		uint8_t *grown = realloc(b->data, capacity);

		if (!grown)
			return NULL;
		b->data = grown;
		b->capacity = capacity;
	}
	at = b->data + b->size;
	b->size += size;
	return at;
}

static int put(struct buffer *b, const void *data, size_t size)
{
	uint8_t *to = take(b, size);

	if (!to)
		return -ENOMEM;
	memcpy(to, data, size);
	return 0;
}

static bool add_extent(struct extents *e, struct extent new)
{
	if (e->n == e->capacity) {
		size_t capacity = 2 * e->n + 64;
		struct extent *grown = reallocarray(e->list, capacity, sizeof(*grown));

		if (!grown)
			return false;
		e->list = grown;
		e->capacity = capacity;
	}
	e->list[e->n++] = new;
	return true;
}

/* ------------------------------------------------------------------ what is in it ------------ */

static bool goes_on(const struct extent *last, const struct corefile_blob *b, uint64_t at)
{
	return b->data && !last->fetched && last->at + last->size == at &&
	       last->data + last->size == b->data;
}

/* Blobs that lie behind each other in memory as in the file are one extent. */
static int put_blob(struct extents *e, const struct corefile_blob *b, uint64_t at, uint32_t section)
{
	struct extent *last = e->n ? &e->list[e->n - 1] : NULL;
	struct extent new = { .at = at, .size = b->size, .key = b->key, .section = section,
			      .fetched = !b->data };

	if (!b->size)
		return 0;
	if (last && goes_on(last, b, at)) {
		last->size += b->size;
		return 0;
	}
	if (b->data)
		new.data = b->data;
	return add_extent(e, new) ? 0 : -ENOMEM;
}

static int put_memory(struct builder *b, struct extents *e, const struct cuda_section *s, uint64_t at)
{
	int r = 0;

	for (uint32_t i = 0; i < s->n && r == 0; i++) {
		const struct corefile_blob *blob = &b->memory[s->first + i]->blob;

		r = put_blob(e, blob, at, s->number);
		at += blob->size;
	}
	return r;
}

static int put_strings(struct builder *b, const struct cuda_table *t, const void *row, size_t record)
{
	struct buffer *strings = &b->image->strings;

	for (const struct cuda_field *f = t->fields; f->count; f++) {
		const char *s;

		if (f->kind != CUDA_STRING || f->since > b->walk.layout)
			continue;
		memcpy(&s, (const char *)row + f->member, sizeof(s));
		if (!s)
			continue;
		pack_u64(b->image->head.data + record + f->at, strings->size);
		if (put(strings, s, strlen(s) + 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int put_rows(struct builder *b, const struct cuda_section *s)
{
	enum cudacore_table table = (enum cudacore_table)(s->table - cuda_tables);
	struct buffer *head = &b->image->head;
	size_t at = head->size;
	uint8_t *to = take(head, s->size);
	int r = to ? 0 : -ENOMEM;

	if (to)
		memset(to, 0, s->size);
	for (uint32_t i = 0; i < s->n && r == 0; i++, at += s->entry_size) {
		const void *row = cuda_row(b->walk.core, table, s->first + i);

		cuda_encode(s->table, b->walk.layout, row, head->data + at);
		r = put_strings(b, s->table, row, at);
	}
	return r;
}

static int put_header(struct builder *b, const struct cuda_section *s, uint64_t offset)
{
	struct buffer *names = &b->image->names;
	const Elf64_Shdr section = {
		.sh_name = (uint32_t)names->size, .sh_type = s->type, .sh_addr = s->address,
		.sh_offset = offset, .sh_size = s->size, .sh_link = s->link, .sh_info = s->info,
		.sh_addralign = s->align, .sh_entsize = s->entry_size,
	};
	size_t length = strlen(s->name);
	uint8_t *name = take(names, length + b->walk.suffix_size + 1);
	uint8_t *to = take(&b->image->sections, sizeof(Elf64_Shdr));

	if (!name || !to)
		return -ENOMEM;
	memcpy(name, s->name, length);
	memcpy(name + length, b->walk.suffix, b->walk.suffix_size);
	name[length + b->walk.suffix_size] = 0;
	corefile_elf_pack_section(to, &section);
	return 0;
}

static int put_section(struct cuda_walk *walk, const struct cuda_section *s)
{
	struct builder *b = (struct builder *)walk;
	struct extents *to = s->part == CUDA_PART_BULK ? &b->bulk : &b->image->all;
	uint64_t at = align_up(b->size[s->part], s->align);

	if (at > PART_MAX || s->size > PART_MAX)
		return -EFBIG;
	if (put_header(b, s, at | (uint64_t)s->part << PART_SHIFT) < 0)
		return -ENOMEM;
	b->size[s->part] = at + s->size;
	if (s->table)
		return put_rows(b, s);
	return s->blob ? put_blob(to, s->blob, at, s->number) : put_memory(b, to, s, at);
}

/* ------------------------------------------------------------------ the whole ---------------- */

static int put_string_section(struct buffer *to, uint64_t at, uint64_t size, size_t name)
{
	const Elf64_Shdr section = { .sh_name = (uint32_t)name, .sh_type = SHT_STRTAB,
				     .sh_offset = at, .sh_size = size, .sh_addralign = 1 };
	uint8_t *header = take(to, sizeof(section));

	if (!header)
		return -ENOMEM;
	corefile_elf_pack_section(header, &section);
	return 0;
}

/* The last two sections.  @return where they end, 0 without memory. */
static uint64_t put_string_sections(struct cudacore_image *image, uint64_t at)
{
	size_t strtab = image->names.size, shstrtab = strtab + sizeof(STRTAB);
	uint64_t names_at = at + image->strings.size;

	if (put(&image->names, STRTAB, sizeof(STRTAB)) < 0 ||
	    put(&image->names, SHSTRTAB, sizeof(SHSTRTAB)) < 0 ||
	    put_string_section(&image->sections, at, image->strings.size, strtab) < 0 ||
	    put_string_section(&image->sections, names_at, image->names.size, shstrtab) < 0)
		return 0;
	return names_at + image->names.size;
}

static void move_sections(struct cudacore_image *image, const uint64_t part_at[CUDA_PART_COUNT])
{
	uint8_t *end = image->sections.data + image->sections.size;

	for (uint8_t *p = image->sections.data + sizeof(Elf64_Shdr); p < end; p += sizeof(Elf64_Shdr)) {
		uint64_t offset;

		memcpy(&offset, p + offsetof(Elf64_Shdr, sh_offset), sizeof(offset));
		offset = le64toh(offset);
		pack_u64(p + offsetof(Elf64_Shdr, sh_offset),
			 IN_PART(offset) + part_at[offset >> PART_SHIFT]);
	}
}

static void put_elf_header(struct cudacore_image *image, uint64_t sections_at, uint32_t n)
{
	const struct corefile_elf_header h = {
		.osabi = CUDA_ELFOSABI, .abi_version = CUDA_ABI_VERSION, .type = ET_CORE,
		.machine = CUDA_EM_CUDA, .sections_at = sections_at, .n_sections = n, .names = n - 1,
	};
	Elf64_Shdr first;

	corefile_elf_pack_header(image->head.data, &h);
	corefile_elf_section0(&h, &first);
	corefile_elf_pack_section(image->sections.data, &first);
	image->n_sections = n;
	image->size = sections_at + image->sections.size;
}

static int append(struct extents *all, const struct extents *part)
{
	for (size_t i = 0; i < part->n; i++)
		if (!add_extent(all, part->list[i]))
			return -ENOMEM;
	return 0;
}

static int put_made(struct extents *all, const struct buffer *b, uint64_t at)
{
	const struct corefile_blob blob = { .data = b->data, .size = b->size };

	return put_blob(all, &blob, at, 0);
}

static void move_extents(struct extents *e, size_t first, uint64_t by)
{
	for (size_t i = first; i < e->n; i++)
		e->list[i].at += by;
}

/* Everything in its place; the tables are behind the header already, whose extent is the first. */
static int assemble(struct builder *b)
{
	struct cudacore_image *image = b->image;
	uint64_t at[CUDA_PART_COUNT] = { [CUDA_PART_TABLES] = sizeof(Elf64_Ehdr) }, behind, end;

	at[CUDA_PART_REGISTERS] = image->head.size;
	at[CUDA_PART_BULK] = align_up(at[CUDA_PART_REGISTERS] + b->size[CUDA_PART_REGISTERS], PAGE_BYTES);
	behind = at[CUDA_PART_BULK] + b->size[CUDA_PART_BULK];
	move_sections(image, at);
	end = put_string_sections(image, behind);
	if (!end)
		return -ENOMEM;
	put_elf_header(image, align_up(end, 8), b->walk.number + 3);
	image->all.list[0] = (struct extent){ .size = image->head.size, .data = image->head.data };
	move_extents(&image->all, 1, at[CUDA_PART_REGISTERS]);
	move_extents(&b->bulk, 0, at[CUDA_PART_BULK]);
	if (append(&image->all, &b->bulk) < 0 || put_made(&image->all, &image->strings, behind) < 0 ||
	    put_made(&image->all, &image->names, behind + image->strings.size) < 0 ||
	    put_made(&image->all, &image->sections, align_up(end, 8)) < 0)
		return -ENOMEM;
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct cudacore_memory *x = *(void *const *)a, *y = *(void *const *)b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static int sort_memory(struct builder *b, struct corefile_problem *error)
{
	const struct cudacore *c = b->walk.core;

	b->memory = calloc(c->n_memory ? c->n_memory : 1, sizeof(*b->memory));
	if (!b->memory)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_memory; i++)
		b->memory[i] = &c->memory[i];
	qsort(b->memory, c->n_memory, sizeof(*b->memory), by_address);
	for (uint32_t i = 0; i < c->n_memory; i++) {
		const struct cudacore_memory *m = b->memory[i];
		uint64_t room = i + 1 < c->n_memory ? b->memory[i + 1]->address : UINT64_MAX;

		if (m->blob.size > room - m->address) {
			corefile_problem_set(error, COREFILE_NO_SECTION, (uint64_t)(m - c->memory),
					     "memory at 0x%llx runs into what follows",
					     (unsigned long long)m->address);
			return -EINVAL;
		}
	}
	b->walk.memory = b->memory;
	return 0;
}

static int reserve_all(struct builder *b)
{
	const struct cudacore *c = b->walk.core;
	struct cudacore_image *image = b->image;
	uint64_t tables = 0, sections = c->n_memory;

	for (unsigned t = 0; t < CUDACORE_TABLE_COUNT; t++) {
		tables += (uint64_t)c->n[t] * cuda_tables[t].sizes[b->walk.layout];
		sections += cuda_tables[t].parent == CUDA_NO_PARENT ? 1 : c->n[cuda_tables[t].parent];
	}
	for (unsigned i = 0; i < CUDA_BLOB_COUNT; i++)
		sections += c->n[cuda_blobs[i].parent];
	if (reserve(&image->head, sizeof(Elf64_Ehdr) + tables) < 0 ||
	    reserve(&image->names, sections * NAME_BYTES) < 0)
		return -ENOMEM;
	return reserve(&image->sections, sections * sizeof(Elf64_Shdr));
}

static int build(struct builder *b, struct corefile_problem *error)
{
	struct cudacore_image *image = b->image;
	int r = sort_memory(b, error);

	r = r < 0 ? r : reserve_all(b);
	if (r < 0)
		return r;
	/* Header, section 0 and the empty name, which all that follows lies behind. */
	if (!add_extent(&image->all, (struct extent){ 0 }) || !take(&image->head, sizeof(Elf64_Ehdr)) || !take(&image->sections, sizeof(Elf64_Shdr)) ||
	    put(&image->strings, "", 1) < 0 || put(&image->names, "", 1) < 0)
		return -ENOMEM;
	b->walk.visit = put_section;
	r = cuda_walk(&b->walk);
	return r < 0 ? r : assemble(b);
}

int cudacore_image_create(const struct cudacore *c, enum cudacore_layout layout,
			  const struct corefile_source *source, struct cudacore_image **ret,
			  struct corefile_problem *error)
{
	struct cudacore_image *image = calloc(1, sizeof(*image));
	struct builder b = { .walk = { .core = c, .layout = layout ? layout : CUDACORE_LAYOUT_R575 },
			     .image = image };
	int r = image ? 0 : -ENOMEM;

	if (r == 0) {
		image->source = source;
		r = build(&b, error);
	}
	free(b.bulk.list);
	free(b.memory);
	if (r < 0)
		cudacore_image_destroy(image);
	else
		*ret = image;
	return r;
}

void cudacore_image_destroy(struct cudacore_image *image)
{
	if (!image)
		return;
	free(image->head.data);
	free(image->strings.data);
	free(image->names.data);
	free(image->sections.data);
	free(image->all.list);
	free(image);
}

uint64_t cudacore_image_size(const struct cudacore_image *image)
{
	return image->size;
}

uint32_t cudacore_image_sections(const struct cudacore_image *image)
{
	return image->n_sections;
}

/* ------------------------------------------------------------------ reading it --------------- */

/* The first extent that ends behind an offset inside the file. */
static struct extent *extent_behind(const struct cudacore_image *image, uint64_t offset)
{
	size_t low = 0, high = image->all.n - 1;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct extent *e = &image->all.list[middle];

		if (e->at + e->size > offset)
			high = middle;
		else
			low = middle + 1;
	}
	return &image->all.list[low];
}

const void *cudacore_image_at(const struct cudacore_image *image, uint64_t offset, uint64_t *ret_size)
{
	static const uint8_t gap[PAGE_BYTES];
	const struct extent *e = offset < image->size ? extent_behind(image, offset) : NULL;

	if (e && offset < e->at && e->at - offset <= sizeof(gap)) {
		*ret_size = e->at - offset;
		return gap;
	}
	if (!e || offset < e->at || e->fetched)
		return NULL;
	*ret_size = e->at + e->size - offset;
	return e->data + (offset - e->at);
}

/* What cannot be read ends its section, unless more of that follows.  @return bytes that are lost. */
static uint64_t cut(struct cudacore_image *image, struct extent *e, uint64_t real)
{
	uint8_t *header = image->sections.data + e->section * sizeof(Elf64_Shdr);
	uint64_t offset, size, lost = e->size - real;

	memcpy(&offset, header + offsetof(Elf64_Shdr, sh_offset), sizeof(offset));
	memcpy(&size, header + offsetof(Elf64_Shdr, sh_size), sizeof(size));
	offset = le64toh(offset);
	if (e->at + e->size == offset + le64toh(size))
		pack_u64(header + offsetof(Elf64_Shdr, sh_size), e->at + real - offset);
	e->size = real;
	return lost;
}

/* @return bytes given: fewer than asked where the rest of the extent is lost. */
static size_t fetch(struct cudacore_image *image, struct extent *e, uint64_t from, uint8_t *to,
		    size_t size, uint64_t *lost)
{
	const struct corefile_source *source = image->source;
	size_t done = 0;

	while (done < size) {
		ssize_t got = source ? source->fetch(source->arg, e->key, from + done, to + done,
						     size - done) : 0;

		if (got <= 0) {
			*lost += cut(image, e, from + done);
			break;
		}
		done += (size_t)got;
	}
	return done;
}

size_t cudacore_image_read(struct cudacore_image *image, uint64_t offset, void *buf, size_t size,
			   uint64_t *ret_lost)
{
	uint64_t lost = 0;
	size_t done = 0;

	if (offset >= image->size)
		return 0;
	size = image->size - offset < size ? (size_t)(image->size - offset) : size;
	while (done < size) {
		uint8_t *to = (uint8_t *)buf + done;
		uint64_t at = offset + done;
		struct extent *e = extent_behind(image, at);
		uint64_t n = (at < e->at ? e->at : e->at + e->size) - at;

		n = n < size - done ? n : size - done;
		if (at < e->at)
			memset(to, 0, n);
		else if (!e->fetched)
			memcpy(to, e->data + (at - e->at), n);
		else
			n = fetch(image, e, at - e->at, to, n, &lost);
		done += n;
	}
	if (ret_lost)
		*ret_lost += lost;
	return done;
}
