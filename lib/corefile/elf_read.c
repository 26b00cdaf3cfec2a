/* SPDX-License-Identifier: MIT */
#include "corefile/elf_read.h"

#include <errno.h>
#include <string.h>

#include "corefile/compress.h"

static int refuse(struct corefile_problem *error, uint64_t at, const char *why)
{
	corefile_problem_set(error, COREFILE_NO_SECTION, at, "%s", why);
	return -ENOEXEC;
}

/* Say why a file is not a 64-bit little-endian ELF file. */
static int refuse_ident(const void *data, size_t size, struct corefile_problem *error)
{
	if (corefile_is_gzip(data, size))
		return refuse(error, 0, "compressed with gzip: expand it with gunzip first");
	if (corefile_is_zstd(data, size))
		return refuse(error, 0, "compressed with zstd: expand it with unzstd first");
	if (size < SELFMAG || memcmp(data, ELFMAG, SELFMAG))
		return refuse(error, 0, "not an ELF file");
	if (size < sizeof(Elf64_Ehdr))
		return refuse(error, size, "the file ends inside the ELF header");
	return refuse(error, EI_CLASS, "not a 64-bit little-endian ELF file");
}

int corefile_elf_open(const void *data, size_t size, struct elf_view *ret,
		      struct corefile_problem *error)
{
	struct elf_view e;

	if (elf_view_init(&e, data, size) < 0)
		return refuse_ident(data, size, error);
	if (e.header.e_shoff && e.header.e_shentsize != sizeof(Elf64_Shdr))
		return refuse(error, offsetof(Elf64_Ehdr, e_shentsize), "odd section header size");
	if (e.header.e_shoff > size || size - e.header.e_shoff < sizeof(Elf64_Shdr))
		return refuse(error, size, "cut short: the section table is behind the end");
	*ret = e;
	return 0;
}
