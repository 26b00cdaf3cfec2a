/* SPDX-License-Identifier: MIT */
/* Code objects: loaded as a runtime does it, and their symbols, for scripts. */
#include "app.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/out.h"
#include "base/str.h"

#define FILE_MAX (SIZE_MAX / 2)

/* A loaded code object; it stays for ever. */
struct app_object {
	struct app_object *next;
	uint8_t *bytes; /* The ELF file. */
	size_t size;
	uint64_t bias;
};

static const Elf64_Ehdr *header(const struct app_object *o)
{
	return (const void *)o->bytes;
}

/* Whether a range lies inside the file. */
static bool lies_inside(const struct app_object *o, uint64_t offset, uint64_t size)
{
	return offset <= o->size && size <= o->size - offset;
}

/* A program header; NULL behind the last.  It is aligned by malloc() and by the linker. */
static const Elf64_Phdr *segment(const struct app_object *o, size_t i)
{
	const Elf64_Ehdr *h = header(o);
	uint64_t at = h->e_phoff + i * sizeof(Elf64_Phdr);

	return i < h->e_phnum && lies_inside(o, at, sizeof(Elf64_Phdr)) ?
		       (const void *)(o->bytes + at) :
		       NULL;
}

/* A section header; NULL behind the last. */
static const Elf64_Shdr *section(const struct app_object *o, size_t i)
{
	const Elf64_Ehdr *h = header(o);
	uint64_t at = h->e_shoff + i * sizeof(Elf64_Shdr);

	return i < h->e_shnum && lies_inside(o, at, sizeof(Elf64_Shdr)) ?
		       (const void *)(o->bytes + at) :
		       NULL;
}

/* Map the segments at their distances from each other, somewhere. */
static int map_segments(struct app_object *o)
{
	const Elf64_Phdr *p;
	uint64_t end = 0;
	uint8_t *base;

	for (size_t i = 0; (p = segment(o, i)); i++)
		if (p->p_type == PT_LOAD && p->p_vaddr + p->p_memsz > end)
			end = p->p_vaddr + p->p_memsz;
	if (!end)
		return -ENOEXEC;
	base = mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	for (size_t i = 0; (p = segment(o, i)); i++)
		if (p->p_type == PT_LOAD && lies_inside(o, p->p_offset, p->p_filesz) &&
		    p->p_filesz <= p->p_memsz)
			memcpy(base + p->p_vaddr, o->bytes + p->p_offset, p->p_filesz);
	o->bias = (uint64_t)(uintptr_t)base;
	return 0;
}

/* Add the object to the list under the URI that a runtime gives it. */
static int publish(struct app *a, const struct app_object *o, const char *path, uint64_t offset,
		   bool is_part, bool in_memory)
{
	auto_out struct out uri;

	out_init(&uri, 0);
	if (in_memory) {
		out_fmt(&uri, "memory://%d#offset=0x%llx&size=%zu", getpid(),
			(unsigned long long)(uintptr_t)o->bytes, o->size);
	} else {
		out_str(&uri, "file://");
		for (const char *p = path; *p; p++) {
			bool plain = strchr("/_.~-", *p) || (*p >= '0' && *p <= '9') ||
				     (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z');

			out_fmt(&uri, plain ? "%c" : "%%%02X", (unsigned char)*p);
		}
		if (is_part)
			out_fmt(&uri, "#offset=%llu&size=%zu", (unsigned long long)offset, o->size);
	}
	return out_error(&uri) ? -ENOMEM : device_object_add(a, uri.data, o->bias);
}

int object_load(struct app *a, const char *path, uint64_t offset, uint64_t size, bool in_memory)
{
	struct app_object *o = calloc(1, sizeof(*o));
	auto_free char *file = NULL;
	size_t file_size;
	int r;

	if (!o)
		return -ENOMEM;
	r = fd_read_file(path, FILE_MAX, &file, &file_size);
	if (r)
		return r;
	if (offset > file_size || size > file_size - offset)
		return -EINVAL;
	o->size = size ? size : file_size - offset;
	o->bytes = malloc(o->size + 1);
	if (!o->bytes)
		return -ENOMEM;
	memcpy(o->bytes, file + offset, o->size);
	if (o->size < sizeof(Elf64_Ehdr) || memcmp(o->bytes, ELFMAG, SELFMAG))
		return -ENOEXEC;
	r = map_segments(o);
	if (r)
		return r;
	o->next = a->objects;
	a->objects = o;
	return publish(a, o, path, offset, offset || size, in_memory);
}

/* ---- symbols ---- */

/* Find a symbol in a table; the name need not end with a NUL. */
static const Elf64_Sym *find_in(const struct app_object *o, const Elf64_Shdr *table,
				const char *name, size_t length)
{
	const Elf64_Shdr *strings = section(o, table->sh_link);
	size_t n = table->sh_size / sizeof(Elf64_Sym);

	if (!strings || !lies_inside(o, table->sh_offset, table->sh_size) ||
	    !lies_inside(o, strings->sh_offset, strings->sh_size))
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const Elf64_Sym *s = (const Elf64_Sym *)(o->bytes + table->sh_offset) + i;
		const char *text = (const char *)o->bytes + strings->sh_offset + s->st_name;

		if (s->st_name + length < strings->sh_size && !strncmp(text, name, length) &&
		    !text[length])
			return s;
	}
	return NULL;
}

/* Find a symbol in any object, the last one first. */
static bool find(const struct app *a, const char *name, size_t length, uint64_t *ret)
{
	for (const struct app_object *o = a->objects; o; o = o->next) {
		const Elf64_Shdr *table;

		for (size_t i = 0; (table = section(o, i)); i++) {
			const Elf64_Sym *s = NULL;

			if (table->sh_type == SHT_SYMTAB || table->sh_type == SHT_DYNSYM)
				s = find_in(o, table, name, length);
			if (!s)
				continue;
			*ret = s->st_value + o->bias;
			return true;
		}
	}
	return false;
}

int object_address(const struct app *a, const char *text, uint64_t *ret)
{
	const char *plus = strchrnul(text, '+');
	uint64_t offset = 0;

	if (*plus && str_to_u64_any(plus + 1, &offset))
		return -EINVAL;
	if (!find(a, text, (size_t)(plus - text), ret))
		return -ENOENT;
	*ret += offset;
	return 0;
}
