/* SPDX-License-Identifier: MIT */
/* Compressed files, expanded within a limit; and whatever they are, compressed and expanded again. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "corefile/compress.h"
#include "fuzzlib.h"

#define MAX 65536u

static int scratch(void)
{
	int fd = memfd_create("expanded", MFD_CLOEXEC);

	if (fd < 0)
		__builtin_trap();
	return fd;
}

/* No more may come out than is allowed, also when it is refused. */
static void expand(const uint8_t *data, size_t size)
{
	int fd = scratch();
	uint64_t at;

	(void)corefile_decompress(data, size, fd, MAX, &at);
	if (at > size || lseek(fd, 0, SEEK_END) > (off_t)MAX)
		__builtin_trap();
	close(fd);
}

static void there_and_back(const uint8_t *data, size_t size)
{
	static uint8_t packed[2 * MAX], back[MAX];
	struct corefile_compress *c;
	int fd = scratch(), out = scratch();
	uint64_t at;
	ssize_t n;

	if (corefile_compress_create(fd, size, &c) < 0 || corefile_compress_write(c, data, size) < 0 ||
	    corefile_compress_finish(c) < 0)
		__builtin_trap();
	corefile_compress_destroy(c);
	n = pread(fd, packed, sizeof(packed), 0);
	if (n <= 0 || corefile_decompress(packed, (size_t)n, out, size, &at) < 0 || at != (uint64_t)n ||
	    pread(out, back, size, 0) != (ssize_t)size || memcmp(back, data, size))
		__builtin_trap();
	close(fd);
	close(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (corefile_is_gzip(data, size) || corefile_is_zstd(data, size))
		expand(data, size);
	if (size <= MAX)
		there_and_back(data, size);
	return 0;
}
