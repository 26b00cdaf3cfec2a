/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_ELF_H
#define HOSTSTACK_ELF_H

/** @file elf.h  Exported symbols of a loaded ELF file, from memory alone: no file is opened. */

#include "hoststack/memory.h"

/** Where a loaded file has its symbols. */
struct hoststack_elf {
	uint64_t bias;
	uint64_t symbols, strings; /**< DT_SYMTAB, DT_STRTAB. */
	uint64_t gnu_hash, hash;   /**< 0: it has none. */
	uint64_t soname;	   /**< Offset in the strings; 0: it has no name. */
	uint32_t n_symbols;	   /**< 0: a hash table tells. */
};

/**
 * Read the headers.
 * @param base  Where the file's first byte is mapped.
 * @return 0; -ENOENT (it is no 64-bit ELF file, or exports nothing); what hoststack_read() returns.
 */
int hoststack_elf_open(struct hoststack_memory *m, uint64_t base, struct hoststack_elf *ret);
/**
 * Look up an exported variable.
 * @param ret_size  May be NULL.
 * @return 0, -ENOENT, what hoststack_read() returns.
 */
int hoststack_elf_find(struct hoststack_memory *m, const struct hoststack_elf *e, const char *name,
		       uint64_t *ret_address, uint64_t *ret_size);
/** Does the file's own name begin so?  @return 1, 0, what hoststack_read() returns. */
int hoststack_elf_is_named(struct hoststack_memory *m, const struct hoststack_elf *e, const char *prefix);

#endif /* HOSTSTACK_ELF_H */
