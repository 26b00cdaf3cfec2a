/* SPDX-License-Identifier: MIT */
#ifndef BASE_ELF_VIEW_H
#define BASE_ELF_VIEW_H

/**
 * @file elf_view.h
 * Bounded access to a 64-bit little-endian ELF file in memory, whole or cut short, which a stranger
 * may have written.
 */

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/reader.h"

/** A file that was looked at.  Its counts are cut to what lies in the file. */
struct elf_view {
	const uint8_t *data; /**< The file; borrowed. */
	size_t size;
	Elf64_Ehdr header;
	uint32_t n_segments; /**< 0 also when program headers have another size than they should. */
	uint32_t n_segments_promised; /**< Program headers that the ELF header speaks of. */
	uint32_t n_sections; /**< 0 also when section headers have another size than they should. */
	uint32_t n_sections_promised; /**< Section headers that the ELF header speaks of. */
	/** Header of the section that holds section names; sh_size is 0 when there is none. */
	Elf64_Shdr names;
};

/**
 * Look at a file.  Counts that do not fit into the ELF header are taken from section 0.
 * @param data  Borrowed as long as @p ret is used.
 * @return 0, -ENOEXEC (no ELF, shorter than its header, of another class or byte order).
 */
int elf_view_init(struct elf_view *ret, const void *data, size_t size);

/** @return program header @p i, which must be below n_segments. */
Elf64_Phdr elf_view_segment(const struct elf_view *v, size_t i);
/** @return section header @p i, which must be below n_sections. */
Elf64_Shdr elf_view_section(const struct elf_view *v, size_t i);

/**
 * Find a range of the file, as far as it lies in it.
 * @param ret_size  At most @p size.
 * @return NULL when the range begins behind the end.
 */
const uint8_t *elf_view_range(const struct elf_view *v, uint64_t offset, uint64_t size,
			      size_t *ret_size);
/**
 * Find the content of a section, as far as it lies in the file.
 * @return NULL when it has none in the file.
 */
const uint8_t *elf_view_bytes(const struct elf_view *v, const Elf64_Shdr *s, size_t *ret_size);
/**
 * @return the C string at an offset of a string table, borrowed from the file; NULL when it does
 *         not end in the table, or not within 16 KiB.
 */
const char *elf_view_string(const struct elf_view *v, const Elf64_Shdr *table, uint64_t at);
/** @return the name of a section; "" when it has none. */
const char *elf_view_section_name(const struct elf_view *v, const Elf64_Shdr *s);

/** One note.  Pointers are borrowed from the reader's bytes. */
struct elf_note {
	const char *name; /**< Terminated; "" when it has none. */
	const uint8_t *desc;
	uint32_t type, size; /**< Type of the note, bytes of its description. */
	size_t desc_at;	     /**< Offset of the description in the reader's bytes. */
};

/**
 * Read the next note of a segment.
 * @return 1, 0 at the end, -EBADMSG when it does not end where the segment does.
 */
int elf_note_next(struct reader *r, struct elf_note *ret);

/**
 * Find an entry of what a program was started with: the content of /proc/PID/auxv, or of the note of a core.
 * @param type  AT_...
 * @return its value; 0: there is none.
 */
uint64_t elf_auxv_find(const void *auxv, size_t size, uint64_t type);

/** @return what this program runs on: EM_... */
uint16_t elf_own_machine(void);

#endif /* BASE_ELF_VIEW_H */
