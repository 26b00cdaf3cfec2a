/* SPDX-License-Identifier: MIT */
/* ELF and DWARF, through our code and through libelf and libdw. */
#include <string.h>

#include "fuzzlib.h"
#include "symbols/image.h"

static struct symbols_location location;

static void check_string(const char *s)
{
	if (s && (s < location.text || s + strlen(s) >= location.text + sizeof(location.text)))
		__builtin_trap();
}

static void locate(struct symbols_image *i, uint64_t address)
{
	symbols_image_locate(i, address, &location);
	if (location.n_frames > SYMBOLS_FRAMES_MAX)
		__builtin_trap();
	for (size_t k = 0; k < location.n_frames; k++) {
		check_string(location.frames[k].function);
		check_string(location.frames[k].raw);
		check_string(location.frames[k].file);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbols_image *i;
	struct symbols_symbol s;
	struct symbols_kernel k;
	uint64_t start, end;

	if (symbols_image_create(data, size, &i) < 0)
		return 0;
	symbols_image_range(i, &start, &end);
	for (uint64_t at = 0x1500; at < 0x1e00; at += 0x28) {
		locate(i, at);
		(void)symbols_image_function(i, at, &s);
	}
	locate(i, start);
	locate(i, end - 1);
	for (uint64_t at = 0; at < 0x900; at += 0x40)
		if (symbols_image_kernel(i, at, &s) == 0)
			(void)symbols_image_metadata(i, at, &k);
	if (symbols_image_bytes(i) < size)
		__builtin_trap();
	symbols_image_destroy(i);
	return 0;
}
