/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_IMAGE_H
#define SYMBOLS_IMAGE_H

/**
 * @file image.h
 * Tells what lies at an address of one ELF image (code object, cubin, host object).
 *
 * All addresses are those of the ELF file: subtract the load bias first.  For a wave that stopped
 * behind its instruction, pass an address inside that instruction.
 *
 * The bytes may be hostile.  They are copied; nothing outside that copy is ever opened or read, and
 * the work for debug information is limited for each question (debug/budget.h): when a limit is hit,
 * answers get poorer, never wrong.  How many questions there were does not matter.
 *
 * Context: one thread at a time; lookups fill caches inside the image.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/metadata/metadata.h"
#include "symbols/metadata/nv_info.h"

/** Limits: bytes of an image, of a build-id, of a name; frames and bytes of text of a location. */
#define SYMBOLS_IMAGE_BYTES_MAX ((size_t)64 << 20)
#define SYMBOLS_BUILD_ID_MAX	64
#define SYMBOLS_NAME_MAX	1024
#define SYMBOLS_FRAMES_MAX	32
#define SYMBOLS_LOCATION_TEXT	32768
/** symbols_image_facts.machine of a cubin. */
#define SYMBOLS_MACHINE_CUDA 190

struct symbols_image;

/** The facts that the headers of an image tell. */
struct symbols_image_facts {
	uint16_t machine; /**< e_machine; 224 is AMD GPU. */
	uint8_t osabi, abi_version;
	uint32_t flags;
	uint8_t build_id[SYMBOLS_BUILD_ID_MAX];
	size_t build_id_size; /**< 0: none. */
	size_t n_symbols;     /**< Number of functions and kernel descriptors. */
	/** There is a section with debug information, which may still be broken. */
	bool has_dwarf;
};

/** A symbol of the image. */
struct symbols_symbol {
	uint64_t address, size;
	char raw[SYMBOLS_NAME_MAX];  /**< Name as in the file; shortened if need be. */
	char name[SYMBOLS_NAME_MAX]; /**< Name for people: demangled, ".kd" taken off. */
};

/** One function of an inline chain.  Strings lie inside the location. */
struct symbols_frame {
	const char *function; /**< Demangled; NULL when unknown. */
	const char *raw;      /**< Linkage name, or function again. */
	const char *file;     /**< Path as the compiler wrote it; NULL when unknown. */
	uint32_t line, column; /**< 0: unknown. */
	bool inlined;	       /**< The function is inlined into that of the next frame. */
};

/**
 * The source location of an address.  The innermost frame comes first; its position is that of the
 * address, the others' positions are those of the calls.  It points into itself: do not copy it.
 */
struct symbols_location {
	size_t n_frames; /**< 0 when there is neither debug information nor a symbol. */
	struct symbols_frame frames[SYMBOLS_FRAMES_MAX];
	bool has_offset;
	uint64_t offset; /**< Bytes from the start of the symbol that contains the address. */
	/** Frames or text were left out: there was no room, or a limit was hit. */
	bool cut;
	size_t text_used;
	char text[SYMBOLS_LOCATION_TEXT];
};

/**
 * Copy and open an image.
 * @param ret  Release with symbols_image_destroy().
 * @return 0, -ENOEXEC (not an ELF file we know), -EFBIG, -ENOMEM.
 */
int symbols_image_create(const void *bytes, size_t size, struct symbols_image **ret);
/** Release an image; NULL is allowed. */
void symbols_image_destroy(struct symbols_image *i);

/** @return what the headers tell; borrowed from the image. */
const struct symbols_image_facts *symbols_image_facts(const struct symbols_image *i);
/** @return roughly the memory that the image takes now, in bytes, for budgets. */
size_t symbols_image_bytes(const struct symbols_image *i);

/**
 * Tell the lowest and one past the highest loaded address; both are 0 without segments.  For a
 * cubin these are addresses of its code, which only a relocated image has.
 */
void symbols_image_range(const struct symbols_image *i, uint64_t *ret_start, uint64_t *ret_end);

/**
 * Find the function that contains the address.
 * @return 0, -ENOENT.
 */
int symbols_image_function(const struct symbols_image *i, uint64_t address,
			   struct symbols_symbol *ret);
/**
 * Find the kernel whose descriptor begins at the address; in a cubin, the kernel that begins there
 * itself.
 * @return 0, -ENOENT.
 */
int symbols_image_kernel(const struct symbols_image *i, uint64_t descriptor,
			 struct symbols_symbol *ret);
/**
 * Find the kernel that has a function as its code, by its name in the file.
 * @return 0, -ENOENT.
 */
int symbols_image_kernel_of(const struct symbols_image *i, const char *function,
			    struct symbols_symbol *ret);
/**
 * Read what the compiler noted about the kernel whose descriptor begins at the address.
 * @param ret  Borrows from the image.
 * @return 0, -ENOENT (also without such a note), -EBADMSG.
 */
int symbols_image_metadata(const struct symbols_image *i, uint64_t descriptor,
			   struct symbols_kernel *ret);

/**
 * Call @p visit with what the compiler noted about each kernel of a cubin, until it returns
 * non-zero, which is then returned.
 * @param visit  Gets the address of the kernel, 0 if the cubin is not relocated.
 * @return 0, or a result of @p visit.
 */
int symbols_image_each_nv_info(const struct symbols_image *i,
			       int (*visit)(void *arg, uint64_t kernel, const void *info, size_t size),
			       void *arg);

/**
 * Call @p visit with each function that has a size, in the order of their addresses, until it returns non-zero, which
 * is then returned.
 * @param visit  Gets the name as in the file, which is borrowed.
 */
int symbols_image_each_function(const struct symbols_image *i,
				int (*visit)(void *arg, uint64_t address, uint64_t size, const char *raw),
				void *arg);

/** A parameter of a function, as its debug information tells.  Texts are borrowed, and never NULL. */
struct symbols_parameter {
	const char *name; /**< "" where it has none. */
	const char *type; /**< As in the source: `const index_t *`; "" where that is not known. */
	/** The type without qualifiers, and what typedefs stand for: `const long *` of the above. */
	const char *base;
	uint64_t size; /**< Bytes; 0: not known. */
};
/**
 * Call @p visit for each parameter of the function of a kernel, in order.
 * @param kernel  Address of its descriptor; in a cubin, its own.
 * @return 0, -ENOENT (there is no such debug information), -EBADMSG (it is broken), or what
 *         @p visit has returned, if that is not 0.
 */
int symbols_image_parameters(struct symbols_image *i, uint64_t kernel,
			     int (*visit)(void *arg, const struct symbols_parameter *p), void *arg);

/**
 * Find the source location and inline chain of an address; without debug information, the symbol.
 * Always fills @p ret.  Of a cubin that is not relocated nothing is known.
 */
void symbols_image_locate(struct symbols_image *i, uint64_t address, struct symbols_location *ret);
/**
 * Find the text of a source, which compilers can put into debug information (clang -gembed-source).
 * @param address  In code that was made of it.
 * @param file     As symbols_image_locate() names it.
 * @param ret      Borrowed from the image; it ends with a NUL.
 * @param ret_size Its bytes without that.
 * @return 0, -ENOENT, -EBADMSG, -ENOMEM.
 */
int symbols_image_source(struct symbols_image *i, uint64_t address, const char *file, const char **ret,
			 size_t *ret_size);
/** Is there a source line for any of its code?  For a large image this takes a while. */
bool symbols_image_has_lines(struct symbols_image *i);
/**
 * Tell the state of the debug information, as far as it was needed until now.
 * @return 0 (also without any), -EBADMSG (broken), -EFBIG (a limit was hit), -ENOMEM.
 */
int symbols_image_debug_state(const struct symbols_image *i);

/** What lib/values reads of an image itself.  Both are borrowed from the image. */
struct debug_info;
struct elf_view;
/** @return the debug information, opened when it was not yet; NULL without any that can be read. */
struct debug_info *symbols_image_debug_info(struct symbols_image *i);
/** @return the file. */
const struct elf_view *symbols_image_elf(const struct symbols_image *i);
/**
 * Keep what lib/values has made of an image as long as the image; there is one.
 * @param bytes    That it takes, as part of symbols_image_bytes().
 * @param destroy  Releases it.
 */
void symbols_image_keep(struct symbols_image *i, void *made, size_t bytes, void (*destroy)(void *made));
/** @return it, borrowed; NULL: none yet. */
void *symbols_image_kept(const struct symbols_image *i);

#endif /* SYMBOLS_IMAGE_H */
