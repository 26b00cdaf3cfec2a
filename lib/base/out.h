/* SPDX-License-Identifier: MIT */
#ifndef BASE_OUT_H
#define BASE_OUT_H

/**
 * @file out.h
 * Growable text buffer with a hard limit.
 *
 * Failure is sticky: after an allocation failure or when the limit is passed, later writes are
 * ignored and out_error() tells why.  Check once, at the end.
 *
 * A zeroed object is an empty buffer with the default limit: `auto_out struct out o = { 0 };`
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct out {
	char *data; /**< NUL-terminated once anything was written; NULL before that. */
	size_t size; /**< Bytes written, without the NUL. */
	size_t capacity;
	size_t limit; /**< Largest number of bytes accepted; 0 means OUT_LIMIT_DEFAULT. */
	int error; /**< 0, -ENOMEM or -EFBIG. */
};

/** Limit of a buffer whose owner names none: 256 MiB. */
#define OUT_LIMIT_DEFAULT ((size_t)256 << 20)

/**
 * Begin with an empty buffer; nothing is allocated yet.
 * @param limit  Largest number of bytes accepted; 0 means OUT_LIMIT_DEFAULT.
 */
void out_init(struct out *o, size_t limit);
/** Free the buffer.  A zeroed object is accepted. */
void out_deinit(struct out *o);
/** Forget content and error, but keep the memory for what is written next. */
void out_reset(struct out *o);

/** Append bytes, which may include NUL. */
void out_bytes(struct out *o, const void *data, size_t size);
/** Append a string without its NUL. */
void out_str(struct out *o, const char *s);
/** Append one byte. */
void out_char(struct out *o, char c);
/** Append a number in decimal. */
void out_u64(struct out *o, uint64_t v);
/** Append a signed number in decimal. */
void out_i64(struct out *o, int64_t v);
/** Append text as printf() formats it. */
void out_fmt(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** The same with a list of arguments, which is consumed. */
void out_vfmt(struct out *o, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));
/** Append `0x` and lower-case hexadecimal digits without padding. */
void out_hex(struct out *o, uint64_t v);
/**
 * Append JSON as a format has it: ' becomes ", %s is a string as out_json_str() appends it (NULL:
 * ""), %u and %d are numbers, %x is an address in a string such as "0x7f00", and %i, an int, is
 * true or false.  Numbers may be long (%lu, %zu, PRIu64); there are no widths.  A comma in front
 * is left out where an object or array has just begun.
 */
void out_json_fmt(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/**
 * Append a JSON string with quotes.  Bytes that are not valid UTF-8 become U+FFFD, so that what a
 * target process put into a name cannot break the document.
 */
void out_json_str(struct out *o, const char *s, size_t size);
/**
 * Append the name of a member, which needs no escapes, with quotes and colon, and with a comma in front if it is
 * not the first.
 */
void out_json_name(struct out *o, const char *name, bool is_first);

/** @return the sticky error: 0, -ENOMEM or -EFBIG. */
static inline int out_error(const struct out *o)
{
	return o->error;
}
/**
 * Hand the buffer over to the caller and begin an empty one with the same limit.
 * @param ret_data  Allocated with malloc(), NUL-terminated, never NULL on success.
 * @return 0, or the sticky error; the buffer stays with @p o then.
 */
int out_steal(struct out *o, char **ret_data, size_t *ret_size);

#define auto_out __attribute__((cleanup(out_deinit)))

#endif /* BASE_OUT_H */
