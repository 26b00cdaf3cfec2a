/* SPDX-License-Identifier: MIT */
#ifndef COREFILE_PACK_H
#define COREFILE_PACK_H

/**
 * @file pack.h
 * Little-endian stores at any alignment; base/reader.h is the other direction.
 */

#include <endian.h>
#include <stdint.h>
#include <string.h>

/** Store 2 bytes. */
static inline void pack_u16(uint8_t *at, uint16_t v)
{
	v = htole16(v);
	memcpy(at, &v, sizeof(v));
}

/** Store 4 bytes. */
static inline void pack_u32(uint8_t *at, uint32_t v)
{
	v = htole32(v);
	memcpy(at, &v, sizeof(v));
}

/** Store 8 bytes. */
static inline void pack_u64(uint8_t *at, uint64_t v)
{
	v = htole64(v);
	memcpy(at, &v, sizeof(v));
}

#endif /* COREFILE_PACK_H */
