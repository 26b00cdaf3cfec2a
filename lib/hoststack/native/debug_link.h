/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_NATIVE_DEBUG_LINK_H
#define HOSTSTACK_NATIVE_DEBUG_LINK_H

/** @file debug_link.h  Section .gnu_debuglink: what a file calls its separate debug file, and the checksum of that. */

#include "hoststack/memory.h"

#define NATIVE_LINK_NAME_MAX 255

struct native_debug_link {
	char name[NATIVE_LINK_NAME_MAX + 1]; /**< Of a file, without directory. */
	uint32_t checksum;		     /**< CRC-32 of all its bytes, as zlib's crc32() makes it. */
};

/** Read the section's bytes.  @return 0; -EBADMSG: they are cut short, or name no file of one directory. */
int native_debug_link_parse(const uint8_t *bytes, size_t size, struct native_debug_link *ret);
/**
 * Find the section.
 * @param m  Bytes of the file by their position.
 * @return 0; -ENOENT (it has none, or is no ELF file); -EBADMSG; -ENOMEM; what hoststack_read() returns.
 */
int native_debug_link_read(struct hoststack_memory *m, struct native_debug_link *ret);

#endif /* HOSTSTACK_NATIVE_DEBUG_LINK_H */
