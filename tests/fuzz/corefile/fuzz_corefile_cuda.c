/* SPDX-License-Identifier: MIT */
/* CUDA core files, read, walked over, and written again when they are sound. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "corefile/cuda/layout.h"
#include "corefile/cuda/read.h"
#include "corefile/cuda/write.h"
#include "fuzzlib.h"

static volatile uint8_t seen;

static const char *string_at(const void *member)
{
	return *(const char *const *)member;
}

static void touch_row(const struct cudacore *c, unsigned table, const char *row)
{
	for (const struct cuda_field *f = cuda_tables[table].fields; f->count; f++)
		if (f->kind == CUDA_STRING)
			seen ^= (uint8_t)strlen(string_at(row + f->member));
	for (unsigned i = 0; i < CUDA_BLOB_COUNT; i++) {
		const struct corefile_blob *b = (const void *)(row + cuda_blobs[i].member);

		if (cuda_blobs[i].parent == table && b->size)
			seen ^= ((const uint8_t *)b->data)[b->size - 1];
	}
	for (unsigned i = 0; i < CUDACORE_TABLE_COUNT; i++) {
		const struct cudacore_range *r = (const void *)(row + cuda_tables[i].children);

		if (cuda_tables[i].parent == table && (r->n > c->n[i] || r->first > c->n[i] - r->n))
			__builtin_trap();
	}
}

static void write_again(const struct cudacore *c)
{
	static int null = -1;

	if (null < 0)
		null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	for (unsigned layout = 0; layout < CUDACORE_LAYOUT_COUNT; layout += 4)
		cudacore_write(c, &(struct cudacore_write_options){ .layout = layout }, null, NULL,
			       NULL);
}

/* Sound or not, in pieces that end anywhere. */
static void read_again(const struct cudacore *c)
{
	struct cudacore_image *image;
	uint8_t piece[997];
	uint64_t at = 0;
	size_t n;

	if (cudacore_image_create(c, CUDACORE_LAYOUT_R615, NULL, &image, NULL) < 0)
		return;
	while ((n = cudacore_image_read(image, at, piece, sizeof(piece), NULL)) && at < 1 << 20) {
		seen ^= piece[n - 1];
		at += n;
	}
	cudacore_image_destroy(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cudacore c;
	uint8_t buf[32];

	(void)cudacore_is(data, size);
	if (cudacore_read(data, size, &c, NULL) < 0)
		return 0;
	for (unsigned t = 0; t < CUDACORE_TABLE_COUNT; t++)
		for (uint32_t i = 0; i < c.n[t]; i++)
			touch_row(&c, t, cuda_row(&c, t, i));
	for (uint32_t i = 0; i < c.n[CUDACORE_LANES]; i++)
		(void)cudacore_lane_exception(&c, i);
	for (uint32_t i = 0; i < c.n_memory; i++)
		(void)cudacore_read_memory(&c, c.memory[i].address + 1, buf, sizeof(buf));
	write_again(&c);
	read_again(&c);
	cudacore_deinit(&c);
	return 0;
}
