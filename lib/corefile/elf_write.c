/* SPDX-License-Identifier: MIT */
#include "corefile/elf_write.h"

#include <stddef.h>

#include "corefile/pack.h"

void corefile_elf_pack_header(uint8_t b[sizeof(Elf64_Ehdr)], const struct corefile_elf_header *h)
{
	memset(b, 0, sizeof(Elf64_Ehdr));
	memcpy(b, ELFMAG, SELFMAG);
	b[EI_CLASS] = ELFCLASS64;
	b[EI_DATA] = ELFDATA2LSB;
	b[EI_VERSION] = EV_CURRENT;
	b[EI_OSABI] = h->osabi;
	b[EI_ABIVERSION] = h->abi_version;
	pack_u16(b + offsetof(Elf64_Ehdr, e_type), h->type);
	pack_u16(b + offsetof(Elf64_Ehdr, e_machine), h->machine);
	pack_u32(b + offsetof(Elf64_Ehdr, e_version), EV_CURRENT);
	pack_u64(b + offsetof(Elf64_Ehdr, e_shoff), h->sections_at);
	pack_u16(b + offsetof(Elf64_Ehdr, e_ehsize), sizeof(Elf64_Ehdr));
	pack_u64(b + offsetof(Elf64_Ehdr, e_phoff), h->segments_at);
	if (h->n_segments)
		pack_u16(b + offsetof(Elf64_Ehdr, e_phentsize), sizeof(Elf64_Phdr));
	pack_u16(b + offsetof(Elf64_Ehdr, e_phnum),
		 h->n_segments < PN_XNUM ? (uint16_t)h->n_segments : PN_XNUM);
	if (h->n_sections)
		pack_u16(b + offsetof(Elf64_Ehdr, e_shentsize), sizeof(Elf64_Shdr));
	pack_u16(b + offsetof(Elf64_Ehdr, e_shnum),
		 h->n_sections < SHN_LORESERVE ? (uint16_t)h->n_sections : 0);
	pack_u16(b + offsetof(Elf64_Ehdr, e_shstrndx),
		 h->names < SHN_LORESERVE ? (uint16_t)h->names : SHN_XINDEX);
}

void corefile_elf_section0(const struct corefile_elf_header *h, Elf64_Shdr *ret)
{
	*ret = (Elf64_Shdr){ 0 };
	if (h->n_sections >= SHN_LORESERVE)
		ret->sh_size = h->n_sections;
	if (h->names >= SHN_LORESERVE)
		ret->sh_link = h->names;
	if (h->n_segments >= PN_XNUM)
		ret->sh_info = h->n_segments;
}

void corefile_elf_pack_segment(uint8_t b[sizeof(Elf64_Phdr)], const Elf64_Phdr *segment)
{
	pack_u32(b + offsetof(Elf64_Phdr, p_type), segment->p_type);
	pack_u32(b + offsetof(Elf64_Phdr, p_flags), segment->p_flags);
	pack_u64(b + offsetof(Elf64_Phdr, p_offset), segment->p_offset);
	pack_u64(b + offsetof(Elf64_Phdr, p_vaddr), segment->p_vaddr);
	pack_u64(b + offsetof(Elf64_Phdr, p_paddr), segment->p_paddr);
	pack_u64(b + offsetof(Elf64_Phdr, p_filesz), segment->p_filesz);
	pack_u64(b + offsetof(Elf64_Phdr, p_memsz), segment->p_memsz);
	pack_u64(b + offsetof(Elf64_Phdr, p_align), segment->p_align);
}

void corefile_elf_pack_section(uint8_t b[sizeof(Elf64_Shdr)], const Elf64_Shdr *section)
{
	pack_u32(b + offsetof(Elf64_Shdr, sh_name), section->sh_name);
	pack_u32(b + offsetof(Elf64_Shdr, sh_type), section->sh_type);
	pack_u64(b + offsetof(Elf64_Shdr, sh_flags), section->sh_flags);
	pack_u64(b + offsetof(Elf64_Shdr, sh_addr), section->sh_addr);
	pack_u64(b + offsetof(Elf64_Shdr, sh_offset), section->sh_offset);
	pack_u64(b + offsetof(Elf64_Shdr, sh_size), section->sh_size);
	pack_u32(b + offsetof(Elf64_Shdr, sh_link), section->sh_link);
	pack_u32(b + offsetof(Elf64_Shdr, sh_info), section->sh_info);
	pack_u64(b + offsetof(Elf64_Shdr, sh_addralign), section->sh_addralign);
	pack_u64(b + offsetof(Elf64_Shdr, sh_entsize), section->sh_entsize);
}
