/* SPDX-License-Identifier: MIT */
/* AMDGPU core files, read, walked over, and written again when they are sound. */
#include "corefile/amdgpu/read.h"
#include "corefile/amdgpu/write.h"
#include "fuzzlib.h"

static volatile uint8_t seen;

static void touch(const struct amdcore *c)
{
	struct amdcore_runtime runtime;
	struct amdcore_device device;
	struct amdcore_queue queue;
	uint8_t buf[64];

	amdcore_get_runtime(c, &runtime);
	for (uint32_t i = 0; i < c->devices.n && c->devices.entry_size; i++)
		amdcore_get_device(c, i, &device);
	for (uint32_t i = 0; i < c->queues.n && c->queues.entry_size; i++)
		amdcore_get_queue(c, i, &queue);
	for (uint32_t i = 0; i < c->n_segments; i++)
		seen ^= (uint8_t)amdcore_read_memory(c, c->segments[i].address + 1, buf, sizeof(buf));
	for (uint32_t i = 0; i < c->n_notes; i++)
		if (c->notes[i].size)
			seen ^= ((const uint8_t *)c->notes[i].desc)[c->notes[i].size - 1];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct amdcore_image *image;
	struct amdcore c;
	uint8_t buf[512];

	(void)amdcore_is(data, size);
	if (amdcore_read(data, size, &c, NULL) < 0)
		return 0;
	touch(&c);
	if (amdcore_image_create(&c, &image) == 0) {
		(void)amdcore_image_read(image, NULL, amdcore_image_size(image) / 2, buf, sizeof(buf), NULL);
		amdcore_image_destroy(image);
	}
	amdcore_deinit(&c);
	return 0;
}
