/* SPDX-License-Identifier: MIT */
#ifndef WORKER_SNAPSHOT_HASH_H
#define WORKER_SNAPSHOT_HASH_H

/**
 * @file hash.h
 * Hashes of bytes that a target chose.  They begin with a secret, so that no target can make them
 * collide on purpose, which would make tables slow.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

/** Mix the bits of a number; distinct numbers give distinct results. */
static inline uint64_t hash_mix(uint64_t x)
{
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	x = (x ^ x >> 32) * UINT64_C(0xd6e8feb86659fd93);
	return x ^ x >> 32;
}

/** @return the secret of this process, which does not change during its life. */
static inline uint64_t hash_secret(void)
{
	/* Sixteen random bytes that the kernel gives to each new program (getauxval(3)). */
	const void *random = (const void *)getauxval(AT_RANDOM);
	uint64_t secret = 0;

	if (random)
		memcpy(&secret, random, sizeof(secret));
	return secret;
}

/** Hash bytes.  @param secret  From hash_secret(). */
static inline uint64_t hash_bytes(uint64_t secret, const void *data, size_t size)
{
	const uint8_t *p = data;
	uint64_t h = hash_mix(secret ^ size), word;

	for (; size >= sizeof(word); p += sizeof(word), size -= sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		h = hash_mix(h ^ word);
	}
	word = 0;
	if (size)
		memcpy(&word, p, size);
	return hash_mix(h ^ word);
}

#endif /* WORKER_SNAPSHOT_HASH_H */
