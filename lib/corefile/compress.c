/* SPDX-License-Identifier: MIT */
#include "corefile/compress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/cleanup.h"
#include "base/fd.h"

/* A dump competes with the target for the processor, so the fast end of the scale is used. */
#define LEVEL 1

#define GZIP_PIECE ((size_t)256 << 10)
#define GZIP_ONLY  16 /* Tells inflateInit2() to accept no other wrapper. */

struct corefile_compress {
	ZSTD_CCtx *ctx;
	int fd;
	size_t out_size;
	uint8_t out[];
};

int corefile_compress_create(int fd, uint64_t total, struct corefile_compress **ret)
{
	size_t out_size = ZSTD_CStreamOutSize();
	struct corefile_compress *c = malloc(sizeof(*c) + out_size);

	if (!c)
		return -ENOMEM;
	c->fd = fd;
	c->out_size = out_size;
	c->ctx = ZSTD_createCCtx();
	if (!c->ctx || ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(c->ctx, total)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->ctx, ZSTD_c_compressionLevel, LEVEL)) ||
	    ZSTD_isError(ZSTD_CCtx_setParameter(c->ctx, ZSTD_c_checksumFlag, 1))) {
		corefile_compress_destroy(c);
		return -ENOMEM;
	}
	*ret = c;
	return 0;
}

void corefile_compress_destroy(struct corefile_compress *c)
{
	if (!c)
		return;
	ZSTD_freeCCtx(c->ctx);
	free(c);
}

static int stream(struct corefile_compress *c, ZSTD_inBuffer *in, ZSTD_EndDirective end)
{
	size_t left;

	do {
		ZSTD_outBuffer out = { .dst = c->out, .size = c->out_size };
		int r;

		left = ZSTD_compressStream2(c->ctx, &out, in, end);
		if (ZSTD_isError(left))
			return -EIO;
		r = fd_write_all(c->fd, c->out, out.pos);
		if (r < 0)
			return r;
	} while (end == ZSTD_e_end ? left != 0 : in->pos < in->size);
	return 0;
}

int corefile_compress_write(struct corefile_compress *c, const void *data, size_t size)
{
	return stream(c, &(ZSTD_inBuffer){ .src = data, .size = size }, ZSTD_e_continue);
}

int corefile_compress_finish(struct corefile_compress *c)
{
	return stream(c, &(ZSTD_inBuffer){ .src = NULL }, ZSTD_e_end);
}

/* A file may begin with a skippable frame (RFC 8878, 3.1), as those of pzstd(1) do. */
bool corefile_is_zstd(const void *data, size_t size)
{
	const uint8_t *b = data;

	return size >= 4 && (!memcmp(b, "\x28\xb5\x2f\xfd", 4) ||
			     ((b[0] & 0xf0) == 0x50 && !memcmp(b + 1, "\x2a\x4d\x18", 3)));
}

bool corefile_is_gzip(const void *data, size_t size)
{
	return size >= 2 && !memcmp(data, "\x1f\x8b", 2);
}

DEFINE_AUTO(ZSTD_DCtx *, ZSTD_freeDCtx);

/* A stream of `zstd --long=31` wants a larger window than the library allows by itself. */
static void allow_any_window(ZSTD_DCtx *ctx)
{
	ZSTD_bounds b = ZSTD_dParam_getBounds(ZSTD_d_windowLogMax);

	if (!ZSTD_isError(b.error))
		ZSTD_DCtx_setParameter(ctx, ZSTD_d_windowLogMax, b.upperBound);
}

static int expand_zstd(const void *data, size_t size, int out_fd, uint64_t max, uint64_t *ret_at)
{
	auto_call(ZSTD_freeDCtxp) ZSTD_DCtx *ctx = ZSTD_createDCtx();
	size_t out_size = ZSTD_DStreamOutSize(), left = 1;
	auto_free uint8_t *buf = malloc(out_size);
	ZSTD_inBuffer in = { .src = data, .size = size };
	uint64_t total = 0;

	if (!ctx || !buf)
		return -ENOMEM;
	allow_any_window(ctx);
	for (;;) {
		ZSTD_outBuffer out = { .dst = buf, .size = out_size };
		int r;

		left = ZSTD_decompressStream(ctx, &out, &in);
		*ret_at = in.pos;
		if (ZSTD_isError(left))
			return ZSTD_getErrorCode(left) == ZSTD_error_memory_allocation ? -ENOMEM : -EBADMSG;
		if (out.pos > max - total)
			return -EFBIG;
		total += out.pos;
		r = fd_write_all(out_fd, buf, out.pos);
		if (r < 0)
			return r;
		/*
		 * If it were asked once more after the last frame, the library would wait for
		 * another one.
		 */
		if (in.pos == in.size && (left == 0 || out.pos < out.size))
			break;
	}
	return left ? -EBADMSG : 0;
}

/* Tapes and block devices fill the rest of a block with zeros, and gunzip ignores them too. */
static bool is_padding(const uint8_t *p, const uint8_t *end)
{
	while (p < end && !*p)
		p++;
	return p == end;
}

/* Several members, one behind the other, are one file (RFC 1952, 2.2). */
static int expand_members(z_stream *z, uint8_t *buf, size_t room, const uint8_t *end, int out_fd,
			  uint64_t max)
{
	uint64_t total = 0;

	for (;;) {
		int status, r;
		size_t n;

		if (z->avail_in == 0)
			z->avail_in = end - z->next_in < (ptrdiff_t)GZIP_PIECE ?
					      (uInt)(end - z->next_in) : GZIP_PIECE;
		z->next_out = buf;
		z->avail_out = (uInt)room;
		status = inflate(z, Z_NO_FLUSH);
		if (status != Z_OK && status != Z_STREAM_END)
			return status == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
		n = room - z->avail_out;
		if (n > max - total)
			return -EFBIG;
		total += n;
		r = fd_write_all(out_fd, buf, n);
		if (r < 0 || (status == Z_STREAM_END && is_padding(z->next_in, end)))
			return r;
		if (status == Z_STREAM_END && inflateReset(z) != Z_OK)
			return -EBADMSG;
	}
}

static int expand_gzip(const void *data, size_t size, int out_fd, uint64_t max, uint64_t *ret_at)
{
	auto_free uint8_t *buf = malloc(GZIP_PIECE);
	z_stream z = { .next_in = data };
	int r;

	if (!buf || inflateInit2(&z, GZIP_ONLY | MAX_WBITS) != Z_OK)
		return -ENOMEM;
	r = expand_members(&z, buf, GZIP_PIECE, (const uint8_t *)data + size, out_fd, max);
	*ret_at = (uint64_t)(z.next_in - (const uint8_t *)data);
	inflateEnd(&z);
	return r;
}

int corefile_decompress(const void *data, size_t size, int out_fd, uint64_t max, uint64_t *ret_at)
{
	*ret_at = 0;
	return corefile_is_gzip(data, size) ? expand_gzip(data, size, out_fd, max, ret_at) :
					      expand_zstd(data, size, out_fd, max, ret_at);
}
