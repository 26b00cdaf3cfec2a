/* SPDX-License-Identifier: MIT */
#include "corefile/amdgpu/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/out.h"
#include "corefile/elf_write.h"
#include "corefile/pack.h"

#define PAGE_BYTES 4096u
/* Bytes in front of the tables of the note: versions, sizes and counts. */
#define STATE_HEAD 40u
/*
 * Most bytes in front of the segments; notes of the host's part are large when it has many threads.
 */
#define HEAD_MAX ((size_t)1 << 30)

struct amdcore_image {
	const struct amdcore *core;
	struct out head;   /* Everything in front of the first segment. */
	/* Offset of each segment in the file, and at last the end of the file. */
	uint64_t *offsets;
};

static uint64_t page_up(uint64_t v)
{
	return (v + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

static uint64_t table_bytes(const struct amdcore_table *t)
{
	return (uint64_t)t->n * t->entry_size;
}

static bool is_sound(const struct amdcore *c)
{
	const struct amdcore_table *tables[] = { &c->runtime, &c->devices, &c->queues };
	uint64_t end = 0, all = 0;

	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		if (tables[i]->entry_size % 8)
			return false;
	for (uint32_t i = 0; i < c->n_segments; i++) {
		const struct amdcore_segment *s = &c->segments[i];

		if (s->address < end || s->size > UINT64_MAX - s->address ||
		    s->bytes.size != s->size || page_up(s->size) < s->size ||
		    all + page_up(s->size) < all)
			return false;
		end = s->address + s->size;
		all += page_up(s->size);
	}
	return c->runtime.n == 1 && c->n_segments < UINT32_MAX &&
	       STATE_HEAD + table_bytes(&c->runtime) + table_bytes(&c->devices) +
			       table_bytes(&c->queues) < UINT32_MAX;
}

static void pad4(struct out *o)
{
	while (o->size % 4)
		out_char(o, '\0');
}

static void put_note_head(struct out *o, const char *name, uint32_t type, uint32_t size)
{
	uint32_t name_size = (uint32_t)strlen(name) + 1;
	uint8_t b[sizeof(Elf64_Nhdr)];

	pack_u32(b, name_size);
	pack_u32(b + 4, size);
	pack_u32(b + 8, type);
	out_bytes(o, b, sizeof(b));
	out_bytes(o, name, name_size);
	pad4(o);
}

/*
 * The table that LLVM publishes lacks the first member, the version, without which no reader takes
 * the note.
 */
static void put_state(struct out *o, const struct amdcore *c)
{
	uint64_t size = STATE_HEAD + table_bytes(&c->runtime) + table_bytes(&c->devices) +
			table_bytes(&c->queues);
	uint8_t b[STATE_HEAD];

	pack_u64(b, AMDCORE_NOTE_VERSION);
	pack_u32(b + 8, c->kfd_major);
	pack_u32(b + 12, c->kfd_minor);
	pack_u64(b + 16, c->runtime.entry_size);
	pack_u32(b + 24, c->devices.n);
	pack_u32(b + 28, c->devices.entry_size);
	pack_u32(b + 32, c->queues.n);
	pack_u32(b + 36, c->queues.entry_size);
	put_note_head(o, "AMDGPU", AMDCORE_NOTE_TYPE, (uint32_t)size);
	out_bytes(o, b, sizeof(b));
	out_bytes(o, c->runtime.data, table_bytes(&c->runtime));
	out_bytes(o, c->devices.data, table_bytes(&c->devices));
	out_bytes(o, c->queues.data, table_bytes(&c->queues));
	pad4(o);
}

static void put_notes(struct out *o, const struct amdcore *c)
{
	for (uint32_t i = 0; i < c->n_notes; i++) {
		put_note_head(o, c->notes[i].name, c->notes[i].type, c->notes[i].size);
		out_bytes(o, c->notes[i].desc, c->notes[i].size);
		pad4(o);
	}
	put_state(o, c);
}

static void put_segment(struct out *o, const Elf64_Phdr *segment)
{
	out_bytes(o, segment, sizeof(*segment));
}

/* Make the header, program headers and notes; the segments follow, each at a page. */
static int make_head(struct amdcore_image *image, const struct out *notes)
{
	const struct amdcore *c = image->core;
	struct corefile_elf_header h = {
		.osabi = c->unified ? ELFOSABI_NONE : AMDCORE_OSABI,
		.abi_version = c->unified ? 0 : AMDCORE_ABI_VERSION,
		.type = ET_CORE,
		.machine = c->unified ? c->machine : AMDCORE_MACHINE,
		.segments_at = sizeof(Elf64_Ehdr),
		.n_segments = c->n_segments + 1,
	};
	uint64_t at = h.segments_at + (uint64_t)h.n_segments * sizeof(Elf64_Phdr);
	Elf64_Ehdr header;
	Elf64_Shdr section0;

	if (h.n_segments >= PN_XNUM) {
		h.sections_at = at;
		h.n_sections = 1;
		at += sizeof(Elf64_Shdr);
	}
	header = corefile_elf_header(&h);
	out_bytes(&image->head, &header, sizeof(header));
	put_segment(&image->head, &(Elf64_Phdr){ .p_type = PT_NOTE,
						 .p_flags = PF_R,
						 .p_offset = at,
						 .p_filesz = notes->size,
						 .p_align = 4 });
	at = page_up(at + notes->size);
	for (uint32_t i = 0; i < c->n_segments; i++) {
		const struct amdcore_segment *s = &c->segments[i];

		/* The offset must be congruent to the address modulo the page (gABI, p_align). */
		at += s->address % PAGE_BYTES;
		image->offsets[i] = at;
		put_segment(&image->head, &(Elf64_Phdr){ .p_type = PT_LOAD,
							 .p_flags = s->flags,
							 .p_offset = at,
							 .p_vaddr = s->address,
							 .p_filesz = s->size,
							 .p_memsz = s->size,
							 .p_align = PAGE_BYTES });
		at += s->size;
		if (i + 1 < c->n_segments)
			at = page_up(at);
	}
	section0 = corefile_elf_section0(&h);
	if (h.n_sections)
		out_bytes(&image->head, &section0, sizeof(section0));
	out_bytes(&image->head, notes->data, notes->size);
	image->offsets[c->n_segments] = at;
	if (!c->n_segments)
		image->offsets[0] = image->head.size;
	return out_error(&image->head);
}

int amdcore_image_create(const struct amdcore *c, struct amdcore_image **ret)
{
	struct amdcore_image *image;
	auto_out struct out notes = { 0 };
	int r;

	if (!is_sound(c))
		return -EINVAL;
	out_init(&notes, HEAD_MAX);
	image = calloc(1, sizeof(*image));
	if (!image)
		return -ENOMEM;
	image->core = c;
	out_init(&image->head, HEAD_MAX);
	image->offsets = calloc((size_t)c->n_segments + 1, sizeof(*image->offsets));
	put_notes(&notes, c);
	r = image->offsets ? out_error(&notes) : -ENOMEM;
	if (r == 0)
		r = make_head(image, &notes);
	if (r < 0) {
		amdcore_image_destroy(image);
		return -ENOMEM;
	}
	*ret = image;
	return 0;
}

void amdcore_image_destroy(struct amdcore_image *image)
{
	if (!image)
		return;
	out_deinit(&image->head);
	free(image->offsets);
	free(image);
}

uint64_t amdcore_image_size(const struct amdcore_image *image)
{
	return image->offsets[image->core->n_segments];
}

/* @return the first segment that ends behind an offset, or the number of segments. */
static uint32_t segment_behind(const struct amdcore_image *image, uint64_t offset)
{
	uint32_t low = 0, high = image->core->n_segments;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (image->offsets[middle] + image->core->segments[middle].size > offset)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static void read_blob(const struct corefile_blob *b, const struct corefile_source *source,
		      uint64_t offset, uint8_t *buf, size_t size, uint64_t *lost)
{
	size_t done = 0;

	if (b->data) {
		memcpy(buf, (const char *)b->data + offset, size);
		return;
	}
	/*
	 * Behind a page that cannot be read there may be one that can, so only the rest of the page
	 * is given up.
	 */
	while (done < size) {
		ssize_t got = source ? source->fetch(source->arg, b->key, offset + done, buf + done,
						     size - done) : 0;
		size_t hole = PAGE_BYTES - (size_t)((offset + done) % PAGE_BYTES);

		if (got > 0) {
			done += (size_t)got;
			continue;
		}
		hole = size - done < hole ? size - done : hole;
		memset(buf + done, 0, hole);
		*lost += hole;
		done += hole;
	}
}

static size_t at_most(uint64_t v, size_t max)
{
	return v < max ? (size_t)v : max;
}

size_t amdcore_image_read(const struct amdcore_image *image, const struct corefile_source *source,
			  uint64_t offset, void *buf, size_t size, uint64_t *ret_lost)
{
	const struct amdcore *c = image->core;
	uint64_t all = amdcore_image_size(image), lost = 0;
	size_t done = 0;

	if (offset >= all)
		return 0;
	size = all - offset < size ? (size_t)(all - offset) : size;
	if (offset < image->head.size) {
		done = image->head.size - offset < size ? image->head.size - (size_t)offset : size;
		memcpy(buf, image->head.data + offset, done);
	}
	for (uint32_t i = segment_behind(image, offset + done); done < size; i++) {
		const struct amdcore_segment *s = i < c->n_segments ? &c->segments[i] : NULL;
		uint64_t at = offset + done, begin = s ? image->offsets[i] : all;
		size_t gap = begin > at ? at_most(begin - at, size - done) : 0, n;

		memset((char *)buf + done, 0, gap);
		done += gap;
		if (!s || done == size)
			break;
		at += gap;
		n = at_most(begin + s->size - at, size - done);
		read_blob(&s->bytes, source, at - begin, (uint8_t *)buf + done, n, &lost);
		done += n;
	}
	if (ret_lost)
		*ret_lost += lost;
	return done;
}
