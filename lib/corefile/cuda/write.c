/* SPDX-License-Identifier: MIT */
#include "corefile/cuda/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "corefile/sink.h"

#define PIECE_BYTES (UINT32_C(1) << 20)

static int put_file(struct cudacore_image *image, struct corefile_sink *s, uint64_t *lost)
{
	uint64_t all = cudacore_image_size(image), at = 0;
	auto_free uint8_t *piece = malloc(PIECE_BYTES);

	while (piece && at < all && !corefile_sink_failed(s)) {
		uint64_t size;
		const void *data = cudacore_image_at(image, at, &size);

		if (!data) {
			size = cudacore_image_read(image, at, piece, PIECE_BYTES, lost);
			data = piece;
		}
		corefile_sink_write(s, data, size);
		at += size;
	}
	return piece ? 0 : -ENOMEM;
}

static int write_image(struct cudacore_image *image, const struct cudacore_write_options *o, int fd,
		       struct cudacore_written *ret)
{
	const struct corefile_sink_options options = { .zstd = o->zstd,
						       .total = cudacore_image_size(image),
						       .progress = o->progress, .arg = o->arg };
	struct corefile_sink *s;
	int r = corefile_sink_create(fd, &options, &s), end;

	if (r < 0)
		return r;
	ret->bytes = options.total;
	ret->sections = cudacore_image_sections(image);
	r = put_file(image, s, &ret->lost);
	end = corefile_sink_finish(s);
	corefile_sink_destroy(s);
	return r < 0 ? r : end;
}

int cudacore_write(const struct cudacore *c, const struct cudacore_write_options *o, int fd,
		   struct cudacore_written *ret, struct corefile_problem *error)
{
	struct corefile_problem none = { .section = COREFILE_NO_SECTION };
	struct cudacore_written written = { 0 };
	struct cudacore_image *image = NULL;
	int r;

	if (!error)
		error = &none;
	*error = none;
	r = cudacore_check(c, error);
	if (r == 0)
		r = cudacore_image_create(c, o->layout, o->source, &image, error);
	if (r == 0)
		r = write_image(image, o, fd, &written);
	cudacore_image_destroy(image);
	if (r < 0 && !error->text[0])
		corefile_problem_set(error, COREFILE_NO_SECTION, 0, "cannot write the core: %s",
				     strerror(-r));
	if (ret)
		*ret = written;
	return r;
}
