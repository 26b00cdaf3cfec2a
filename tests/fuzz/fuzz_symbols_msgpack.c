/* SPDX-License-Identifier: MIT */
/* The metadata note of a code object. */
#include <string.h>

#include "fuzzlib.h"
#include "symbols/demangle.h"
#include "symbols/metadata/metadata.h"
#include "symbols/metadata/msgpack.h"

static int touch_argument(void *arg, const struct symbols_argument *a)
{
	size_t *n = arg;

	for (size_t i = 0; i < a->name_size; i++)
		*n += (unsigned char)a->name[i];
	for (size_t i = 0; i < a->type_size; i++)
		*n += (unsigned char)a->type[i];
	for (size_t i = 0; i < a->value_kind_size; i++)
		*n += (unsigned char)a->value_kind[i];
	return 0;
}

static int touch(void *arg, const struct symbols_kernel *k)
{
	size_t n = 0;

	(void)symbols_metadata_arguments(k, touch_argument, &n);

	for (size_t i = 0; i < k->name_size; i++)
		n += (unsigned char)k->name[i];
	for (size_t i = 0; i < k->symbol_size; i++)
		n += (unsigned char)k->symbol[i];
	return n == SIZE_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct msgpack_item item;
	struct symbols_kernel k;
	struct reader m;
	char raw[512], buf[256];

	(void)symbols_metadata_each(data, size, touch, NULL);
	(void)symbols_metadata_find(data, size, "scale.kd", &k);
	reader_init(&m, data, size);
	while (msgpack_next(&m, &item))
		if (item.n > size || m.pos > m.size)
			__builtin_trap();
	/* The same bytes as a name. */
	if (size >= sizeof(raw))
		size = sizeof(raw) - 1;
	memcpy(raw, data, size);
	raw[size] = '\0';
	(void)symbols_demangle(raw, buf, sizeof(buf));
	if (strlen(buf) >= sizeof(buf))
		__builtin_trap();
	return 0;
}
