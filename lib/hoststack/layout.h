/* SPDX-License-Identifier: MIT */
#ifndef HOSTSTACK_LAYOUT_H
#define HOSTSTACK_LAYOUT_H

/**
 * @file layout.h
 * Where an interpreter keeps what is read here: CPython 3.8 to 3.15.
 *
 * From 3.13 on the interpreter says so itself, in a table at the start of _PyRuntime.  The releases
 * before that have the same layout in all their patch releases, and rows of constants here.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of the largest table that is understood (3.15). */
#define HOSTSTACK_TABLE_MAX 888
/* Most bytes of the structures that are read as a whole. */
#define HOSTSTACK_STATE_MAX 4096
#define HOSTSTACK_FRAME_MAX 512
#define HOSTSTACK_CODE_MAX  512

/** Offsets in bytes; 0 where this interpreter has no such member, unless said otherwise. */
struct hoststack_layout {
	uint32_t version; /**< PY_VERSION_HEX. */
	uint8_t minor;	  /**< 8 for 3.8. */
	bool free_threaded;
	bool has_table; /**< It came from the interpreter. */
	uint32_t interpreters; /**< In the runtime: the first interpreter. */
	/** In the runtime (up to 3.11). */
	uint32_t gil_holder, gil_locked;
	/** In the interpreter: pointer to its lock; and where in the lock (3.12 on). */
	uint32_t gil, lock_holder, lock_locked;
	uint32_t lock_enabled; /**< Whether there is one at all (free-threaded); may be 0. */
	uint32_t interp_next /**< May be 0. */, interp_id, interp_threads;
	uint32_t thread_size, thread_next, thread_interp, thread_id, thread_native_id;
	uint32_t thread_frame;	/**< The current frame; of 3.11 and 3.12 the `cframe`. */
	bool has_cframe;
	uint32_t cframe_frame;	/**< In the `cframe`: the current frame; may be 0. */
	uint32_t thread_chunk;	/**< The data stack. */
	uint32_t frame_size, frame_previous, frame_code /**< May be 0. */, frame_at;
	uint32_t frame_owner;
	uint32_t frame_entry;	/**< Whether the evaluation function was called for it (3.11). */
	uint32_t frame_tlbc;	/**< Which copy of the instructions it runs (free-threaded, 3.14 on). */
	uint32_t code_size, code_file, code_name, code_qualname, code_lines, code_first_line;
	uint32_t code_instructions, code_tlbc;
	uint32_t object_size, object_type;
	uint32_t str_state, str_length, str_ascii, str_compact;
	uint32_t bytes_length, bytes_data;
	/** For coroutines that no thread runs (3.14 on); all 0 if one of them makes no sense. */
	uint32_t frame_stack, generator_frame, generator_state, type_flags, long_tag, long_digits, set_table, set_mask;
};

/** The row of constants for 3.8 to 3.12.  @param minor  8 to 12.  @return NULL: there is none. */
const struct hoststack_layout *hoststack_layout_row(unsigned minor);
/** Do these bytes of _PyRuntime begin with a table? */
bool hoststack_layout_is_table(const uint8_t *bytes, size_t size);
/** @return bytes of the table of that interpreter; 0: it is not one that is known. */
size_t hoststack_layout_table_size(uint64_t version);
/**
 * Read a table.
 * @param size  At least hoststack_layout_table_size() bytes, and 16.
 * @return 0, -ENOTSUP (another version than 3.13 to 3.15), -EBADMSG (it makes no sense).
 */
int hoststack_layout_read(const uint8_t *table, size_t size, struct hoststack_layout *ret);

#endif /* HOSTSTACK_LAYOUT_H */
