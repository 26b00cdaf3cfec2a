/* SPDX-License-Identifier: MIT */
#ifndef BASE_PAGE_H
#define BASE_PAGE_H

/**
 * @file page.h
 * Pages of this machine's memory: 4 KiB on x86-64, and 4, 16 or 64 KiB on aarch64, as the kernel was built.
 */

#include <stdint.h>
#include <unistd.h>

/** @return the bytes of a page, a power of two. */
static inline uint64_t page_bytes(void)
{
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

/** @return the address of the page that an address is in. */
static inline uint64_t page_down(uint64_t address)
{
	return address & ~(page_bytes() - 1);
}

/** @return the first address of a page that is not below an address; 0 beyond the last page of all. */
static inline uint64_t page_up(uint64_t address)
{
	return page_down(address + page_bytes() - 1);
}

#endif /* BASE_PAGE_H */
