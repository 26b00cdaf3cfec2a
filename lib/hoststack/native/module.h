/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_MODULE_H
#define HOSTSTACK_NATIVE_MODULE_H

/** @file module.h  A program or library that is loaded: where its code is, its unwind table and its build id. */

#include "hoststack/elf.h"
#include "hoststack/native/processor.h"
#include "hoststack/native/rules.h"
#include "hoststack/native/symbols.h"

#define NATIVE_CODE_MAX	    8
#define NATIVE_BUILD_ID_MAX 32

struct native_module {
	uint64_t base;	  /**< Where the file's first byte is mapped. */
	const char *name; /**< Borrowed. */
	const struct native_processor *processor; /**< What its code is for. */
	/* What native_module_open() found. */
	bool is_open, is_elf;
	uint64_t bias, begin, end;
	struct {
		uint64_t begin, end;
	} code[NATIVE_CODE_MAX]; /**< What may be executed. */
	size_t n_code;
	uint64_t table, table_size, n_entries; /**< .eh_frame_hdr; 0 entries: there is none. */
	char build_id[2 * NATIVE_BUILD_ID_MAX + 1]; /**< Hexadecimal; empty: it has none. */
	bool has_symbols;
	struct hoststack_elf elf;
	struct native_symbols symbols;
};

/**
 * Read the headers, once.
 * @return 0, also if it is no ELF file of this processor; what hoststack_read() returns if nothing more can be read.
 */
int native_module_open(struct hoststack_memory *m, struct native_module *module);
bool native_module_has_code(const struct native_module *module, uint64_t pc);
/**
 * Find the rules at an instruction.
 * @param ret_bytes  malloc'ed; the rules point into it.  NULL on failure.
 * @return 0; -ENOENT (it has none); -EBADMSG; what hoststack_read() returns.
 */
int native_module_find_rules(struct hoststack_memory *m, const struct native_module *module, uint64_t pc,
			     struct native_rules *ret, uint8_t **ret_bytes);
/** Find the build id in a note segment.  @param ret  Of `build_id`'s size; empty if there is none. */
void native_build_id(const uint8_t *notes, size_t size, char *ret);

#endif /* HOSTSTACK_NATIVE_MODULE_H */
