/* SPDX-License-Identifier: MIT */
#include "hoststack/native/debug_link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "hoststack/native/debug_symbols.h"

#define SECTION ".gnu_debuglink"
/* A name, its end, and what fills up to the next word, in which the checksum is. */
#define SECTION_MAX (NATIVE_LINK_NAME_MAX + 1 + 4)

int native_debug_link_parse(const uint8_t *bytes, size_t size, struct native_debug_link *ret)
{
	const uint8_t *end = memchr(bytes, '\0', size);
	const size_t length = end ? (size_t)(end - bytes) : size, at = (length + 4) & ~(size_t)3;
	const char *name = (const char *)bytes;

	/* Whatever it names has to lie beside it: a name with a directory could lead anywhere. */
	if (!end || !length || length > NATIVE_LINK_NAME_MAX || at > size || size - at < 4 ||
	    memchr(bytes, '/', length) || !strcmp(name, ".") || !strcmp(name, ".."))
		return -EBADMSG;
	memcpy(ret->name, bytes, length + 1);
	ret->checksum = (uint32_t)hoststack_number(bytes, at, 4);
	return 0;
}

/* @return 1, 0, what hoststack_read() returns. */
static int is_link(struct hoststack_memory *m, const Elf64_Shdr *names, const Elf64_Shdr *s)
{
	char name[sizeof(SECTION)];
	int r;

	if (s->sh_type != SHT_PROGBITS || s->sh_flags & SHF_COMPRESSED || s->sh_size > SECTION_MAX ||
	    s->sh_name >= names->sh_size || names->sh_size - s->sh_name < sizeof(name))
		return 0;
	r = hoststack_read(m, names->sh_offset + s->sh_name, name, sizeof(name));
	return r < 0 ? r : !memcmp(name, SECTION, sizeof(name));
}

int native_debug_link_read(struct hoststack_memory *m, struct native_debug_link *ret)
{
	auto_free Elf64_Shdr *sections = NULL;
	uint8_t bytes[SECTION_MAX];
	Elf64_Ehdr eh;
	size_t i = 0;
	int r = native_sections_read(m, &eh, &sections);

	if (r < 0)
		return r;
	if (eh.e_shstrndx >= eh.e_shnum)
		return -ENOENT;
	for (; i < eh.e_shnum && r == 0; i++)
		r = is_link(m, &sections[eh.e_shstrndx], &sections[i]);
	if (r > 0)
		r = hoststack_read(m, sections[i - 1].sh_offset, bytes, sections[i - 1].sh_size);
	else if (r == 0)
		r = -ENOENT;
	if (r < 0)
		return r == -EFAULT ? -ENOENT : r;
	return native_debug_link_parse(bytes, sections[i - 1].sh_size, ret);
}
