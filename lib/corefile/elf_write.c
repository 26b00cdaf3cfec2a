/* SPDX-License-Identifier: MIT */
#include "corefile/elf_write.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "headers are written as they are");

Elf64_Ehdr corefile_elf_header(const struct corefile_elf_header *h)
{
	return (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT,
			     h->osabi, h->abi_version },
		.e_type = h->type,
		.e_machine = h->machine,
		.e_version = EV_CURRENT,
		.e_phoff = h->segments_at,
		.e_shoff = h->sections_at,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_phentsize = h->n_segments ? sizeof(Elf64_Phdr) : 0,
		.e_phnum = h->n_segments < PN_XNUM ? (uint16_t)h->n_segments : PN_XNUM,
		.e_shentsize = h->n_sections ? sizeof(Elf64_Shdr) : 0,
		.e_shnum = h->n_sections < SHN_LORESERVE ? (uint16_t)h->n_sections : 0,
		.e_shstrndx = h->names < SHN_LORESERVE ? (uint16_t)h->names : SHN_XINDEX,
	};
}

Elf64_Shdr corefile_elf_section0(const struct corefile_elf_header *h)
{
	return (Elf64_Shdr){
		.sh_size = h->n_sections >= SHN_LORESERVE ? h->n_sections : 0,
		.sh_link = h->names >= SHN_LORESERVE ? h->names : 0,
		.sh_info = h->n_segments >= PN_XNUM ? h->n_segments : 0,
	};
}
