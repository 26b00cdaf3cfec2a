/* SPDX-License-Identifier: MIT */
#ifndef DAP_JSON_H
#define DAP_JSON_H

/**
 * @file json.h
 * Values out of a client's message, by name.
 *
 * Clients send more than an adapter asks for, and write numbers as they like: nothing here
 * complains.  Values are pieces of a text that dap_json_parse() accepted and live as long as it
 * does.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A value; borrowed from the text that it is a piece of. */
struct dap_json {
	const char *text; /**< NULL: there is no such value. */
	size_t size;
};

/**
 * Check a message.
 * @param text  Borrowed by @p ret and by all values out of it.
 * @return false if the text is not one JSON object of bounded nesting.
 */
bool dap_json_parse(const char *text, size_t size, struct dap_json *ret);

/**
 * A member of an object by its name; it is absent as well if it is null, and if @p v is no object.
 */
struct dap_json dap_json_get(struct dap_json v, const char *name);
/**
 * Items at this position or behind it count as absent: to find one takes time in proportion to its
 * position.
 */
#define DAP_JSON_ITEMS_MAX 1024
/** Item @p i of an array; it is absent behind the array's end, and if @p v is no array. */
struct dap_json dap_json_item(struct dap_json v, size_t i);
/** Whether there is such a value. */
static inline bool dap_json_has(struct dap_json v)
{
	return v.text != NULL;
}

/**
 * Copy the text of a string, escapes resolved.
 * @return false if it is no string, or has more than @p size - 1 bytes.
 */
bool dap_json_str(struct dap_json v, char *ret, size_t size);
/**
 * Read a whole number, or a string that holds one, decimal or 0x-hex.
 * @return false if it is neither.
 */
bool dap_json_i64(struct dap_json v, int64_t *ret);
/** The same up to UINT64_MAX, without a sign. */
bool dap_json_u64(struct dap_json v, uint64_t *ret);
/** Whether a value is `true`; anything else counts as false. */
bool dap_json_is_true(struct dap_json v);

#endif /* DAP_JSON_H */
