/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_DEBUG_SYMBOLS_H
#define HOSTSTACK_NATIVE_DEBUG_SYMBOLS_H

/** @file debug_symbols.h  Symbols of a separate debug file, which has also those of functions that are not exported. */

#include <elf.h>

#include "hoststack/elf.h"

/**
 * Read the headers of a file's sections.
 * @param m    Bytes of the file by their position.
 * @param ret  malloc'ed; as many as @p ret_header says.
 * @return 0; -ENOENT (it is no 64-bit ELF file, or has too many); -ENOMEM; what hoststack_read() returns.
 */
int native_sections_read(struct hoststack_memory *m, Elf64_Ehdr *ret_header, Elf64_Shdr **ret);
/**
 * Find the symbols of a file.
 * @param m	    Bytes of the file by their position.
 * @param build_id  That it must have, hexadecimal; NULL: whoever asks knows by other means that it is the one.
 * @param ret	    For native_symbols_name(), in the file's own addresses.
 * @return 0; -ENOENT (it is of another build, or has none); -ENOMEM; what hoststack_read() returns.
 */
int native_debug_symbols_open(struct hoststack_memory *m, const char *build_id, struct hoststack_elf *ret);

#endif /* HOSTSTACK_NATIVE_DEBUG_SYMBOLS_H */
