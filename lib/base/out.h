/* SPDX-License-Identifier: MIT */
#ifndef BASE_OUT_H
#define BASE_OUT_H

/**
 * @file out.h
 * Growable text buffer with a hard limit.
 *
 * Failure is sticky: after an allocation failure or when the limit is passed, later writes are
 * ignored and out_error() tells why.  Check once, at the end.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct out {
	char *data; /**< NUL-terminated once anything was written; NULL before. */
	size_t size; /**< Bytes written, without the NUL. */
	size_t capacity;
	size_t limit;
	int error; /**< 0, -ENOMEM or -EFBIG. */
};

#define OUT_LIMIT_DEFAULT ((size_t)256 << 20)

/** @param limit Largest number of bytes accepted; 0 means OUT_LIMIT_DEFAULT. */
void out_init(struct out *o, size_t limit);
/** Accepts a zeroed object. */
void out_deinit(struct out *o);
void out_reset(struct out *o);

void out_bytes(struct out *o, const void *data, size_t size);
void out_str(struct out *o, const char *s);
void out_char(struct out *o, char c);
void out_u64(struct out *o, uint64_t v);
void out_i64(struct out *o, int64_t v);
void out_fmt(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void out_vfmt(struct out *o, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/** `0x` and lower-case digits, no padding. */
void out_hex(struct out *o, uint64_t v);
/**
 * JSON string with quotes.  Bytes that are not valid UTF-8 become U+FFFD, so that what a target
 * process put into a name cannot break the document.
 */
void out_json_str(struct out *o, const char *s, size_t size);

static inline int out_error(const struct out *o)
{
	return o->error;
}
/** Hand the buffer over (malloc'ed, NUL-terminated, never NULL on success). */
int out_steal(struct out *o, char **ret_data, size_t *ret_size);

#define auto_out __attribute__((cleanup(out_deinit)))

#endif /* BASE_OUT_H */
