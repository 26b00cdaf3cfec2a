/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_IMAGE_H
#define SYMBOLS_IMAGE_H

/**
 * @file image.h
 * One ELF image (code object, cubin, host object): what lies at an address.
 *
 * All addresses are those of the ELF file: subtract the load bias first.  For a wave that stopped
 * behind its instruction, pass an address inside that instruction.
 *
 * The bytes may be hostile.  They are copied; nothing outside that copy is ever opened or read, and
 * the work for debug information is limited (the limits in debug_info.c): when a
 * limit is hit, answers get poorer, never wrong.
 * Context: single thread; lookups fill caches inside the image.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/metadata.h"

#define SYMBOLS_IMAGE_BYTES_MAX ((size_t)64 << 20)
#define SYMBOLS_BUILD_ID_MAX	64
#define SYMBOLS_NAME_MAX	1024
#define SYMBOLS_FRAMES_MAX	32
#define SYMBOLS_LOCATION_TEXT	32768

struct symbols_image;

struct symbols_image_facts {
	uint16_t machine; /**< 224: AMD GPU. */
	uint8_t osabi, abi_version;
	uint32_t flags;
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX];
	size_t build_id_size; /**< 0: none. */
	size_t n_symbols;     /**< Functions and kernel descriptors. */
	bool has_dwarf;	      /**< There is a section of it; it may still be broken. */
};

/** A symbol of the image. */
struct symbols_symbol {
	uint64_t address, size;
	char raw[SYMBOLS_NAME_MAX];  /**< As in the file; shortened if need be. */
	char name[SYMBOLS_NAME_MAX]; /**< For people: demangled, ".kd" taken off. */
};

/** One function of an inline chain.  Strings lie inside the location. */
struct symbols_frame {
	const char *function; /**< Demangled; NULL when unknown. */
	const char *raw;      /**< Linkage name, or function again. */
	const char *file;     /**< Path as the compiler wrote it; NULL when unknown. */
	uint32_t line, column; /**< 0: unknown. */
	bool inlined;	       /**< Into the frame behind it. */
};

/**
 * Where an address came from: innermost frame first; its position is that of the address, the
 * others' positions are those of the calls.  Points into itself: do not copy.
 */
struct symbols_location {
	size_t n_frames; /**< 0: neither debug information nor symbol. */
	struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
	bool has_offset;
	uint64_t offset; /**< From the start of the symbol that contains the address. */
	bool cut;	 /**< Frames or text left out: no room, or a limit was hit. */
	size_t text_used;
	char text[SYMBOLS_LOCATION_TEXT];
};

/**
 * @param ret  Release with symbols_image_destroy().
 * @return 0, -ENOEXEC (not an ELF file we know), -EFBIG, -ENOMEM.
 */
int symbols_image_create(const void *bytes, size_t size, struct symbols_image **ret);
/** NULL is allowed. */
void symbols_image_destroy(struct symbols_image *i);

const struct symbols_image_facts *symbols_image_facts(const struct symbols_image *i);
/** Rough memory it occupies now, for budgets. */
size_t symbols_image_bytes(const struct symbols_image *i);

/** Is the address in a loaded segment? */
bool symbols_image_contains(const struct symbols_image *i, uint64_t address);
/**
 * Lowest and one past the highest loaded address; both 0 without segments.  Of a cubin, addresses of
 * its code, which only a relocated image has.
 */
void symbols_image_range(const struct symbols_image *i, uint64_t *ret_start, uint64_t *ret_end);

/** Function that contains the address.  @return 0, -ENOENT. */
int symbols_image_function(const struct symbols_image *i, uint64_t address,
			   struct symbols_symbol *ret);
/**
 * Kernel whose descriptor begins at the address; of a cubin, which begins itself there.
 * @return 0, -ENOENT.
 */
int symbols_image_kernel(const struct symbols_image *i, uint64_t descriptor,
			 struct symbols_symbol *ret);
/** The kernel that a function is the code of, by its name in the file.  @return 0, -ENOENT. */
int symbols_image_kernel_of(const struct symbols_image *i, const char *function,
			    struct symbols_symbol *ret);
/**
 * What the compiler noted of the kernel whose descriptor begins at the address.
 * @param ret  Borrows from the image.
 * @return 0, -ENOENT (also without such a note), -EBADMSG.
 */
int symbols_image_metadata(const struct symbols_image *i, uint64_t descriptor,
			   struct symbols_kernel *ret);

/**
 * Source position and inline chain; falls back to the symbol.  Always fills @p ret.
 * Of a cubin that is not relocated nothing is known.
 */
void symbols_image_locate(struct symbols_image *i, uint64_t address, struct symbols_location *ret);
/** Is there a source line for any of its code?  Of a large image this takes a while. */
bool symbols_image_has_lines(struct symbols_image *i);
/**
 * How debug information was, as far as it was needed until now.
 * @return 0 (also without any), -EBADMSG (broken), -EFBIG (a limit was hit), -ENOMEM.
 */
int symbols_image_debug_state(const struct symbols_image *i);

#endif /* SYMBOLS_IMAGE_H */
