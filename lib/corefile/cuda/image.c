/* SPDX-License-Identifier: MIT */
/*
 * Plans where each byte of a CUDA core comes from, and makes what is not in memory: tables, names,
 * section headers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"

#include "corefile/cuda/walk.h"
#include "corefile/cuda/write.h"
#include "corefile/elf_write.h"
#include "corefile/pack.h"

#define STRTAB	   ".strtab"
#define SHSTRTAB   ".shstrtab"
#define PAGE_BYTES 4096u
/*
 * While the file is planned, the offset of a section is that in its part, with the part's number on
 * top.
 */
#define PART_SHIFT 62u
#define PART_MAX   (UINT64_C(1) << 61)
#define IN_PART(v) ((v) & ((UINT64_C(1) << PART_SHIFT) - 1))

/* Bytes that are made.  A pointer that take() returns is valid until the next call. */
struct buffer {
	uint8_t *data;
	size_t size, capacity;
};

/*
 * The sources of an extent's bytes: memory, the caller's source, or a warp of which they are made
 * when they are asked for.
 */
enum kind { AT_HAND, FETCHED, OF_WARP };

/* A run of bytes of the file.  There are a million of them when no blobs lie together. */
struct extent {
	uint64_t at, size;
	union {
		const uint8_t *data;
		uint64_t key;
		/* While the file is planned, of a stream: place among the bytes made. */
		uint64_t run;
		uint32_t warp; /* Position in image->warps. */
	};
	/* Place of the header of the section that ends with it; 0: none that can be changed. */
	uint32_t section;
	enum kind kind;
};

/* The lists of extents, one part of the file behind the other; the extents of each are in order. */
enum list { TABLES, REGISTERS, BULK, STRINGS, NAMES, SECTIONS, LIST_COUNT };

struct extents {
	struct extent *list;
	size_t n, capacity;
};

/*
 * Tables, names, or section headers.  Those of lanes are made when they are asked for, warp by
 * warp: getting memory for all of them takes longer than making them.
 */
struct stream {
	struct buffer made;
	size_t run; /* Place in @c made from where on bytes are in no extent yet. */
	uint64_t size;
};

/* The state of the walk when it comes to a warp, from which cuda_walk_warp() can go on later. */
struct warp_at {
	uint64_t at[CUDA_PART_COUNT];
	uint32_t row, number, link, info, name, suffix;
	uint32_t suffix_size;
};

struct cudacore_image {
	const struct cudacore *core;
	enum cudacore_layout layout;
	const struct corefile_source *source;
	struct extents lists[LIST_COUNT];
	struct stream streams[LIST_COUNT]; /* Only of those lists that are made. */
	struct buffer suffixes;
	struct warp_at *warps;
	uint32_t n_warps;
	uint64_t part_at[CUDA_PART_COUNT];
	uint64_t size;
	uint32_t n_sections;
	uint8_t *scratch; /* Room for the largest list that a warp has. */
};

struct builder {
	struct cuda_walk walk; /* The first member, because visitors get a pointer to it. */
	struct cudacore_image *image;
	const struct cudacore_memory **memory;
	uint64_t at[CUDA_PART_COUNT];
	uint32_t name;	/* Place of the next section's name among the names. */
	bool in_warp;	/* Sections are below a warp, and only counted. */
	uint64_t sizes[LIST_COUNT]; /* Bytes that were counted of each list. */
	uint64_t largest;
	/* List of a warp that is being made, and where it goes. */
	enum list list;
	uint8_t *to;
};

/* Round up to a multiple of a power of 2. */
static uint64_t align_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) & ~(to - 1);
}

/* ------------------------------------------------------------------ memory ------------------- */

static uint8_t *take(struct buffer *b, size_t size)
{
	uint8_t *at;

	if (vec_reserve(&b->data, b->size, size, &b->capacity, 1) < 0)
		return NULL;
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

static int add_extent(struct extents *e, const struct extent *new)
{
	if (vec_reserve(&e->list, e->n, 1, &e->capacity, sizeof(*e->list)) < 0)
		return -ENOMEM;
	e->list[e->n++] = *new;
	return 0;
}

/* Put what was made since the last call into an extent. */
static int end_run(struct cudacore_image *image, enum list list)
{
	struct stream *s = &image->streams[list];
	const struct extent run = { .at = s->size, .size = s->made.size - s->run, .run = s->run };

	s->size += run.size;
	s->run = s->made.size;
	return run.size ? add_extent(&image->lists[list], &run) : 0;
}

/* ------------------------------------------------------------------ blobs -------------------- */

static bool goes_on(const struct extent *last, const struct corefile_blob *b, uint64_t at)
{
	return b->data && last->kind == AT_HAND && last->at + last->size == at &&
	       last->data + last->size == b->data;
}

/* Add a blob.  Blobs that lie behind each other in memory as in the file become one extent. */
static int put_blob(struct extents *e, const struct corefile_blob *b, uint64_t at, uint32_t section)
{
	struct extent *last = e->n ? &e->list[e->n - 1] : NULL;
	struct extent new = { .at = at, .size = b->size, .key = b->key, .section = section,
			      .kind = FETCHED };

	if (!b->size)
		return 0;
	if (last && goes_on(last, b, at)) {
		last->size += b->size;
		return 0;
	}
	if (b->data) {
		new.data = b->data;
		new.kind = AT_HAND;
	}
	return add_extent(e, &new);
}

static int put_memory(struct builder *b, const struct cuda_section *s, uint64_t at,
		      uint32_t section)
{
	int r = 0;

	for (uint32_t i = 0; i < s->n && r == 0; i++) {
		const struct corefile_blob *blob = &b->memory[s->first + i]->blob;

		r = put_blob(&b->image->lists[BULK], blob, at, section);
		at += blob->size;
	}
	return r;
}

/* ------------------------------------------------------------------ sections ----------------- */

static void encode_rows(const struct cudacore *c, enum cudacore_layout layout,
			const struct cuda_section *s, uint8_t *to)
{
	enum cudacore_table table = (enum cudacore_table)(s->table - cuda_tables);

	memset(to, 0, s->size);
	for (uint32_t i = 0; i < s->n; i++, to += s->entry_size)
		cuda_encode(s->table, layout, cuda_row(c, table, s->first + i), to);
}

static size_t name_size(const struct cuda_walk *w, const struct cuda_section *s)
{
	return s->name_size + w->suffix_size + 1;
}

static void pack_name(const struct cuda_walk *w, const struct cuda_section *s, uint8_t *to)
{
	memcpy(to, s->name, s->name_size);
	memcpy(to + s->name_size, w->suffix, w->suffix_size);
	to[s->name_size + w->suffix_size] = 0;
}

static void pack_header(const struct cuda_section *s, uint32_t name, uint64_t offset, uint8_t *to)
{
	const Elf64_Shdr header = {
		.sh_name = name, .sh_type = s->type, .sh_addr = s->address, .sh_offset = offset,
		.sh_size = s->size, .sh_link = s->link, .sh_info = s->info,
		.sh_addralign = s->align, .sh_entsize = s->entry_size };

	memcpy(to, &header, sizeof(header));
}

/*
 * @return the offset of a section in its part; each walk meets the sections of a part in the same
 *         order.
 */
static uint64_t place(struct builder *b, const struct cuda_section *s)
{
	uint64_t at = align_up(b->at[s->part], s->align);

	b->at[s->part] = at + s->size;
	return at;
}

/*
 * Add the strings of all rows of a section, whose table was made just now, and refer to them there.
 */
static int put_strings(struct builder *b, const struct cuda_section *s, size_t record)
{
	struct buffer *strings = &b->image->streams[STRINGS].made;
	struct buffer *tables = &b->image->streams[TABLES].made;
	enum cudacore_table table = (enum cudacore_table)(s->table - cuda_tables);

	for (uint32_t i = 0; i < s->n; i++, record += s->entry_size)
		for (const struct cuda_field *f = s->table->fields; f->count; f++) {
			const char *text;

			if (f->kind != CUDA_STRING || f->since > b->walk.layout)
				continue;
			memcpy(&text,
			       (char *)cuda_row(b->walk.core, table, s->first + i) + f->member,
			       sizeof(text));
			if (!text)
				continue;
			pack_u64(tables->data + record + f->at, strings->size);
			if (put(strings, text, strlen(text) + 1) < 0)
				return -ENOMEM;
		}
	return 0;
}

/* Make all of a section but its blob: header, name and rows. */
static int make_section(struct builder *b, const struct cuda_section *s, uint64_t at)
{
	struct stream *streams = b->image->streams;
	size_t record = streams[TABLES].made.size, name = name_size(&b->walk, s);
	uint8_t *header = take(&streams[SECTIONS].made, sizeof(Elf64_Shdr));
	uint8_t *text = take(&streams[NAMES].made, name);
	uint8_t *rows = s->table ? take(&streams[TABLES].made, s->size) : NULL;

	if (!header || !text || (s->table && !rows))
		return -ENOMEM;
	pack_header(s, b->name, at | (uint64_t)s->part << PART_SHIFT, header);
	pack_name(&b->walk, s, text);
	b->name += (uint32_t)name;
	if (!s->table)
		return 0;
	encode_rows(b->walk.core, b->walk.layout, s, rows);
	return put_strings(b, s, record);
}

static void count_section(struct builder *b, const struct cuda_section *s)
{
	size_t name = name_size(&b->walk, s);

	b->name += (uint32_t)name;
	b->sizes[NAMES] += name;
	b->sizes[SECTIONS] += sizeof(Elf64_Shdr);
	b->sizes[TABLES] += s->table ? s->size : 0;
}

static int put_section(struct cuda_walk *walk, const struct cuda_section *s)
{
	struct builder *b = (struct builder *)walk;
	struct cudacore_image *image = b->image;
	struct extents *to = &image->lists[s->part == CUDA_PART_BULK ? BULK : REGISTERS];
	uint32_t header = (uint32_t)image->streams[SECTIONS].made.size;
	uint64_t at;

	if (b->at[s->part] > PART_MAX || s->size > PART_MAX)
		return -EFBIG;
	at = place(b, s);
	if (b->in_warp) {
		count_section(b, s);
		return s->blob ? put_blob(to, s->blob, at, 0) : 0;
	}
	if (make_section(b, s, at) < 0)
		return -ENOMEM;
	if (s->table)
		return 0;
	return s->blob ? put_blob(to, s->blob, at, header) : put_memory(b, s, at, header);
}

/* ------------------------------------------------------------------ warps -------------------- */

static int remember_warp(struct builder *b, uint32_t row, uint32_t link, uint32_t info)
{
	struct cudacore_image *image = b->image;
	struct warp_at *w = &image->warps[image->n_warps];

	*w = (struct warp_at){ .row = row, .link = link, .info = info, .number = b->walk.number,
			       .name = b->name, .suffix = (uint32_t)image->suffixes.size,
			       .suffix_size = (uint32_t)b->walk.suffix_size };
	memcpy(w->at, b->at, sizeof(w->at));
	return put(&image->suffixes, b->walk.suffix, b->walk.suffix_size);
}

/* Plan what is below a warp: remember the walk's state and count the bytes, but make nothing. */
static int plan_warp(struct cuda_walk *walk, uint32_t row, uint32_t link, uint32_t info)
{
	struct builder *b = (struct builder *)walk;
	struct cudacore_image *image = b->image;
	int r = remember_warp(b, row, link, info);

	b->in_warp = true;
	memset(b->sizes, 0, sizeof(b->sizes));
	r = r < 0 ? r : cuda_walk_warp(walk, row, link, info);
	b->in_warp = false;
	for (unsigned list = 0; list < LIST_COUNT && r == 0; list++) {
		struct stream *s = &image->streams[list];
		struct extent e = { .size = b->sizes[list], .kind = OF_WARP };

		if (!e.size)
			continue;
		r = end_run(image, list);
		e.at = s->size;
		e.warp = image->n_warps;
		s->size += e.size;
		b->largest = e.size > b->largest ? e.size : b->largest;
		r = r < 0 ? r : add_extent(&image->lists[list], &e);
	}
	image->n_warps++;
	return r;
}

static int make_of_warp(struct cuda_walk *walk, const struct cuda_section *s)
{
	struct builder *b = (struct builder *)walk;
	size_t name = name_size(walk, s);
	uint64_t at = place(b, s);

	if (b->list == NAMES) {
		pack_name(walk, s, b->to);
		b->to += name;
	} else if (b->list == SECTIONS) {
		pack_header(s, b->name, b->image->part_at[s->part] + at, b->to);
		b->to += sizeof(Elf64_Shdr);
	} else if (s->table) {
		encode_rows(walk->core, walk->layout, s, b->to);
		b->to += s->size;
	}
	b->name += (uint32_t)name;
	return 0;
}

/* Make all that a list has of a warp. */
static void make_warp(struct cudacore_image *image, enum list list, uint32_t warp, uint8_t *to)
{
	const struct warp_at *w = &image->warps[warp];
	struct builder b = { .image = image, .name = w->name, .list = list, .to = to,
			     .walk = { .core = image->core, .layout = image->layout,
				       .number = w->number, .visit = make_of_warp,
				       .only_tables = list == TABLES,
				       .suffix_size = w->suffix_size } };

	memcpy(b.at, w->at, sizeof(b.at));
	memcpy(b.walk.suffix, image->suffixes.data + w->suffix, w->suffix_size);
	(void)cuda_walk_warp(&b.walk, w->row, w->link, w->info);
}

/* ------------------------------------------------------------------ the whole ---------------- */

static int put_string_section(struct cudacore_image *image, uint64_t at, uint64_t size,
			      uint64_t name)
{
	const Elf64_Shdr header = { .sh_name = (uint32_t)name, .sh_type = SHT_STRTAB,
				    .sh_offset = at, .sh_size = size, .sh_addralign = 1 };

	return put(&image->streams[SECTIONS].made, &header, sizeof(header));
}

/*
 * Add the two sections of strings, which are the last ones, and end the lists that are complete
 * then.
 */
static int put_string_sections(struct builder *b, uint64_t strings_at)
{
	struct cudacore_image *image = b->image;
	struct stream *names = &image->streams[NAMES], *strings = &image->streams[STRINGS];

	if (put(&names->made, STRTAB, sizeof(STRTAB)) < 0 ||
	    put(&names->made, SHSTRTAB, sizeof(SHSTRTAB)) < 0 || end_run(image, TABLES) < 0 ||
	    end_run(image, STRINGS) < 0 || end_run(image, NAMES) < 0 ||
	    put_string_section(image, strings_at, strings->size, b->name) < 0 ||
	    put_string_section(image, strings_at + strings->size, names->size,
			       b->name + sizeof(STRTAB)) < 0)
		return -ENOMEM;
	return end_run(image, SECTIONS);
}

static void move_sections(struct cudacore_image *image)
{
	struct buffer *made = &image->streams[SECTIONS].made;
	/* The two sections of strings have their final offsets already. */
	uint8_t *end = made->data + made->size - 2 * sizeof(Elf64_Shdr);

	for (uint8_t *p = made->data + sizeof(Elf64_Shdr); p < end; p += sizeof(Elf64_Shdr)) {
		uint64_t offset;

		memcpy(&offset, p + offsetof(Elf64_Shdr, sh_offset), sizeof(offset));
		offset = le64toh(offset);
		pack_u64(p + offsetof(Elf64_Shdr, sh_offset),
			 IN_PART(offset) + image->part_at[offset >> PART_SHIFT]);
	}
}

static void put_elf_header(struct cudacore_image *image, uint64_t sections_at, uint32_t n)
{
	const struct corefile_elf_header h = {
		.osabi = CUDA_ELFOSABI, .abi_version = CUDA_ABI_VERSION, .type = ET_CORE,
		.machine = CUDA_EM_CUDA, .sections_at = sections_at, .n_sections = n, .names = n - 1,
	};
	const Elf64_Ehdr header = corefile_elf_header(&h);
	const Elf64_Shdr first = corefile_elf_section0(&h);

	memcpy(image->streams[TABLES].made.data, &header, sizeof(header));
	memcpy(image->streams[SECTIONS].made.data, &first, sizeof(first));
	image->n_sections = n;
}

/*
 * Turn the place of extents in their list into one in the file, and their place among what was made
 * into an address, which is final only now.
 */
static void move_extents(struct cudacore_image *image, enum list list, uint64_t by)
{
	const uint8_t *made = image->streams[list].made.data;

	for (size_t i = 0; i < image->lists[list].n; i++) {
		struct extent *e = &image->lists[list].list[i];

		e->at += by;
		if (made && e->kind == AT_HAND)
			e->data = made + e->run;
	}
}

static int assemble(struct builder *b)
{
	struct cudacore_image *image = b->image;
	uint64_t at[LIST_COUNT] = { 0 };

	at[REGISTERS] = sizeof(Elf64_Ehdr) + b->at[CUDA_PART_TABLES];
	at[BULK] = align_up(at[REGISTERS] + b->at[CUDA_PART_REGISTERS], PAGE_BYTES);
	at[STRINGS] = at[BULK] + b->at[CUDA_PART_BULK];
	if (put_string_sections(b, at[STRINGS]) < 0)
		return -ENOMEM;
	at[NAMES] = at[STRINGS] + image->streams[STRINGS].size;
	at[SECTIONS] = align_up(at[NAMES] + image->streams[NAMES].size, 8);
	image->part_at[CUDA_PART_TABLES] = sizeof(Elf64_Ehdr);
	image->part_at[CUDA_PART_REGISTERS] = at[REGISTERS];
	image->part_at[CUDA_PART_BULK] = at[BULK];
	image->size = at[SECTIONS] + image->streams[SECTIONS].size;
	move_sections(image);
	put_elf_header(image, at[SECTIONS], b->walk.number + 3);
	for (unsigned list = 0; list < LIST_COUNT; list++)
		move_extents(image, list, at[list]);
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

static int build(struct builder *b, struct corefile_problem *error)
{
	struct cudacore_image *image = b->image;
	struct stream *streams = image->streams;
	size_t n = (size_t)image->core->n[CUDACORE_WARPS] + 1;
	int r = sort_memory(b, error);

	if (r < 0)
		return r;
	image->warps = reallocarray(NULL, n, sizeof(*image->warps));
	/*
	 * ELF header, section 0 and the empty name come first, and all that follows lies behind
	 * them.
	 */
	if (!image->warps || !take(&streams[TABLES].made, sizeof(Elf64_Ehdr)) ||
	    !take(&streams[SECTIONS].made, sizeof(Elf64_Shdr)) ||
	    put(&streams[STRINGS].made, "", 1) < 0 || put(&streams[NAMES].made, "", 1) < 0)
		return -ENOMEM;
	b->name = 1;
	r = cuda_walk(&b->walk);
	if (r < 0)
		return r;
	image->scratch = malloc(b->largest + 1);
	return image->scratch ? assemble(b) : -ENOMEM;
}

int cudacore_image_create(const struct cudacore *c, enum cudacore_layout layout,
			  const struct corefile_source *source, struct cudacore_image **ret,
			  struct corefile_problem *error)
{
	struct cudacore_image *image = calloc(1, sizeof(*image));
	struct builder b = { .walk = { .core = c, .visit = put_section, .warp = plan_warp },
			     .image = image };
	int r = -ENOMEM;

	if (image) {
		image->core = c;
		image->layout = b.walk.layout = layout ? layout : CUDACORE_LAYOUT_R575;
		image->source = source;
		r = build(&b, error);
	}
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
	for (unsigned list = 0; list < LIST_COUNT; list++) {
		free(image->lists[list].list);
		free(image->streams[list].made.data);
	}
	free(image->suffixes.data);
	free(image->scratch);
	free(image->warps);
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

static bool ends_behind(const struct extent *e, uint64_t offset)
{
	return e->at + e->size > offset;
}

/* @return the first extent that ends behind an offset inside the file. */
static struct extent *extent_behind(const struct cudacore_image *image, uint64_t offset,
				    enum list *ret)
{
	const struct extents *l = image->lists;
	size_t low = 0, high;

	while (!l->n || !ends_behind(&l->list[l->n - 1], offset))
		l++;
	*ret = (enum list)(l - image->lists);
	for (high = l->n - 1; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (ends_behind(&l->list[middle], offset))
			high = middle;
		else
			low = middle + 1;
	}
	return &l->list[low];
}

const void *cudacore_image_at(const struct cudacore_image *image, uint64_t offset,
			      uint64_t *ret_size)
{
	static const uint8_t gap[PAGE_BYTES];
	const struct extent *e;
	enum list list;

	if (offset >= image->size)
		return NULL;
	e = extent_behind(image, offset, &list);
	if (offset < e->at) {
		*ret_size = e->at - offset;
		return *ret_size <= sizeof(gap) ? gap : NULL;
	}
	*ret_size = e->at + e->size - offset;
	return e->kind == AT_HAND ? e->data + (offset - e->at) : NULL;
}

/*
 * Shorten an extent whose rest cannot be read, and its section if it ends with this extent.
 * @return the bytes that are lost.
 */
static uint64_t cut(struct cudacore_image *image, struct extent *e, uint64_t real)
{
	uint8_t *header = image->streams[SECTIONS].made.data + e->section;
	uint64_t offset, size, lost = e->size - real;

	memcpy(&offset, header + offsetof(Elf64_Shdr, sh_offset), sizeof(offset));
	memcpy(&size, header + offsetof(Elf64_Shdr, sh_size), sizeof(size));
	offset = le64toh(offset);
	if (e->section && e->at + e->size == offset + le64toh(size))
		pack_u64(header + offsetof(Elf64_Shdr, sh_size), e->at + real - offset);
	e->size = real;
	return lost;
}

/*
 * Fetch bytes of a blob from the source.
 * @return bytes given: fewer than asked where the rest of the extent is lost.
 */
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

/*
 * Make bytes of an extent.
 * @return bytes given, at most what is left of the extent.
 */
static size_t read_extent(struct cudacore_image *image, enum list list, struct extent *e,
			  uint64_t from, uint8_t *to, size_t size, uint64_t *lost)
{
	size = e->size - from < size ? (size_t)(e->size - from) : size;
	if (e->kind == FETCHED)
		return fetch(image, e, from, to, size, lost);
	if (e->kind == AT_HAND) {
		memcpy(to, e->data + from, size);
	} else if (size == e->size) {
		make_warp(image, list, e->warp, to);
	} else {
		make_warp(image, list, e->warp, image->scratch);
		memcpy(to, image->scratch + from, size);
	}
	return size;
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
		uint64_t at = offset + done, gap;
		enum list list;
		struct extent *e = extent_behind(image, at, &list);

		gap = at < e->at ? e->at - at : 0;
		gap = gap < size - done ? gap : size - done;
		memset(to, 0, gap);
		done += gap ? gap : read_extent(image, list, e, at - e->at, to, size - done, &lost);
	}
	if (ret_lost)
		*ret_lost += lost;
	return done;
}
