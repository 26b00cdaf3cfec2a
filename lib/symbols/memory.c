/* SPDX-License-Identifier: MIT */
#include "symbols/memory.h"

#include <errno.h>
#include <string.h>

#define STRING_STEP 256u

int symbols_memory_read(const struct symbols_memory *m, uint64_t address, void *buf, size_t size)
{
	uint64_t end;
	ssize_t n;

	if (__builtin_add_overflow(address, (uint64_t)size, &end))
		return -EFAULT;
	n = m->read(m->arg, address, buf, size);
	if (n < 0)
		return (int)n;
	return (size_t)n == size ? 0 : -EFAULT;
}

ssize_t symbols_memory_string(const struct symbols_memory *m, uint64_t address, char *buf,
			      size_t max)
{
	size_t have = 0;

	while (have <= max) {
		/*
		 * Steps end at multiples of the step, so that none of them enters a page without
		 * need.
		 */
		size_t want = STRING_STEP - (size_t)((address + have) % STRING_STEP);
		const char *nul;
		ssize_t n;

		if (want > max + 1 - have)
			want = max + 1 - have;
		if (address > UINT64_MAX - have - want)
			return -EFAULT;
		n = m->read(m->arg, address + have, buf + have, want);
		if (n < 0)
			return n;
		nul = memchr(buf + have, '\0', (size_t)n);
		if (nul)
			return nul - buf;
		if ((size_t)n < want)
			return -EFAULT;
		have += want;
	}
	return -ENAMETOOLONG;
}
