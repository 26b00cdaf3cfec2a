/* SPDX-License-Identifier: MIT */
#ifndef SYMBOLS_URI_H
#define SYMBOLS_URI_H

/**
 * @file uri.h
 * Names of code objects, as a runtime writes them into its list:
 *
 *	file://PATH[#offset=N&size=N]      memory://PID#offset=N&size=N
 *
 * `?` may stand for `#`, bytes of PATH may be `%XX`, N is a number as in C.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOLS_URI_PATH_MAX 4095 /**< Longest path, decoded, without the NUL. */
/** Longest text: every byte of the path escaped, and room for the numbers. */
#define SYMBOLS_URI_MAX (3 * SYMBOLS_URI_PATH_MAX + 128)

/** The kinds of places of a code object. */
enum symbols_uri_kind { SYMBOLS_URI_FILE, SYMBOLS_URI_MEMORY };

/** A name that was taken apart. */
struct symbols_uri {
	enum symbols_uri_kind kind;
	/** Path of a file as its owner sees it; else empty. */
	char path[SYMBOLS_URI_PATH_MAX + 1];
	/** Process whose memory it is, as its owner counts; else 0. */
	uint32_t pid;
	uint64_t offset;		     /**< Offset in the file, or address in memory. */
	/** Always set for memory; a file without size is meant up to its end. */
	bool has_size;
	/** Bytes; never 0 with has_size, and offset + size does not overflow. */
	uint64_t size;
};

/**
 * Take a name apart.
 * @param text  Need not be terminated.
 * @return 0, -EINVAL (not such a URI), -ERANGE (a number), -ENAMETOOLONG, -EPROTONOSUPPORT (other
 *         scheme).
 */
int symbols_uri_parse(const char *text, size_t size, struct symbols_uri *ret);

#endif /* SYMBOLS_URI_H */
