/* SPDX-License-Identifier: MIT */
#include "hoststack/layout.h"

#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "hoststack/memory.h"

/* Most bytes of the runtime and of an interpreter. */
#define LARGE_MAX (1u << 20)
#define TABLE_HEAD 24 /* Cookie, version, free_threaded. */

/*
 * 3.8 to 3.12: compiled from the headers of 3.8.18, 3.9.18, 3.10.13, 3.11.2, 3.11.7 and 3.12.1, and each read a live
 * process.  Of the frames of 3.8 to 3.10 (PyFrameObject) the part in front of the block stack is read.
 */
#define STR_AND_BYTES                                                                             \
	.object_size = 16, .object_type = 8, .str_state = 32, .str_length = 16, .bytes_length = 16, \
	.bytes_data = 32
#define FRAME_OBJECT                                                                              \
	.thread_next = 8, .thread_interp = 16, .thread_id = 176, .thread_frame = 24,               \
	.frame_previous = 24, .frame_code = 32, .code_size = 176, .code_file = 104, .code_name = 112, \
	.code_first_line = 40, .code_lines = 120, .str_ascii = 48, .str_compact = 72, STR_AND_BYTES

static const struct hoststack_layout rows[] = {
	{ .minor = 8, .interpreters = 32, .gil_holder = 1160, .gil_locked = 1168, .interp_next = 0, .interp_id = 16,
	  .interp_threads = 8, .thread_size = 264, .frame_size = 120, .frame_at = 104, FRAME_OBJECT },
	{ .minor = 9, .interpreters = 32, .gil_holder = 360, .gil_locked = 368, .interp_next = 0, .interp_id = 24,
	  .interp_threads = 8, .thread_size = 264, .frame_size = 120, .frame_at = 104, FRAME_OBJECT },
	{ .minor = 10, .interpreters = 32, .gil_holder = 360, .gil_locked = 368, .interp_next = 0, .interp_id = 24,
	  .interp_threads = 8, .thread_size = 280, .frame_size = 112, .frame_at = 96, FRAME_OBJECT },
	{ .minor = 11, .interpreters = 40, .gil_holder = 368, .gil_locked = 376, .interp_next = 0, .interp_id = 48,
	  .interp_threads = 16, .thread_size = 360, .thread_next = 8, .thread_interp = 16, .thread_id = 152,
	  .thread_native_id = 160, .thread_frame = 56, .has_cframe = true, .cframe_frame = 8, .thread_chunk = 296,
	  .frame_size = 80, .frame_previous = 48, .frame_code = 32, .frame_at = 56, .frame_owner = 69,
	  .frame_entry = 68, .code_size = 192, .code_file = 112, .code_name = 120, .code_qualname = 128,
	  .code_first_line = 72, .code_lines = 136, .code_instructions = 184, .str_ascii = 48, .str_compact = 72,
	  STR_AND_BYTES },
	{ .minor = 12, .interpreters = 40, .gil = 384, .lock_holder = 8, .lock_locked = 16, .interp_next = 0,
	  .interp_id = 8, .interp_threads = 72, .thread_size = 288, .thread_next = 8, .thread_interp = 16,
	  .thread_id = 136, .thread_native_id = 144, .thread_frame = 56, .has_cframe = true, .cframe_frame = 0,
	  .thread_chunk = 232, .frame_size = 80, .frame_previous = 8, .frame_code = 0, .frame_at = 56,
	  .frame_owner = 70, .code_size = 200, .code_file = 112, .code_name = 120, .code_qualname = 128,
	  .code_first_line = 68, .code_lines = 136, .code_instructions = 192, .str_ascii = 40, .str_compact = 56,
	  STR_AND_BYTES },
};

const struct hoststack_layout *hoststack_layout_row(unsigned minor)
{
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (rows[i].minor == minor)
			return &rows[i];
	return NULL;
}

/* A member of the layout, where in the table it stands (3.13, 3.14, 3.15; 0: nowhere), and what bounds it. */
struct entry {
	uint16_t member;
	uint16_t at[3];
	uint16_t size_at[3]; /* Of the structure that it lies in; {0}: it is a size itself. */
	uint16_t width;
	uint32_t max;
	bool may_be_0;
};

#define MEMBER(name) offsetof(struct hoststack_layout, name)
#define RUNTIME	     { 24, 24, 24 }
#define INTERP	     { 48, 48, 48 }
#define THREAD	     { 152, 176, 176 }
#define FRAME	     { 224, 248, 312 }
#define CODE	     { 272, 312, 376 }
#define OBJECT	     { 352, 400, 464 }
#define STR	     { 536, 616, 712 }
#define BYTES	     { 512, 592, 688 }
#define TYPE	     { 368, 416, 480 }
#define SET	     { 0, 496, 592 }
#define LONG	     { 488, 568, 664 }
#define GENERATOR    { 0, 664, 792 }

/* Include/internal/pycore_debug_offsets.h of each release; the positions do not change within one. */
static const struct entry entries[] = {
	{ MEMBER(interpreters), { 40, 40, 40 }, RUNTIME, 8, LARGE_MAX, false },
	{ MEMBER(interp_id), { 56, 56, 56 }, INTERP, 8, LARGE_MAX, true },
	{ MEMBER(interp_next), { 64, 64, 64 }, INTERP, 8, LARGE_MAX, true },
	{ MEMBER(interp_threads), { 72, 72, 72 }, INTERP, 8, LARGE_MAX, false },
	{ MEMBER(gil), { 112, 120, 120 }, INTERP, 8, LARGE_MAX, true },
	{ MEMBER(thread_size), THREAD, { 0 }, 0, HOSTSTACK_STATE_MAX, false },
	{ MEMBER(thread_next), { 168, 192, 192 }, THREAD, 8, HOSTSTACK_STATE_MAX, true },
	{ MEMBER(thread_interp), { 176, 200, 200 }, THREAD, 8, HOSTSTACK_STATE_MAX, true },
	{ MEMBER(thread_frame), { 184, 208, 208 }, THREAD, 8, HOSTSTACK_STATE_MAX, false },
	{ MEMBER(thread_id), { 192, 216, 240 }, THREAD, 8, HOSTSTACK_STATE_MAX, false },
	{ MEMBER(thread_native_id), { 200, 224, 248 }, THREAD, 8, HOSTSTACK_STATE_MAX, false },
	{ MEMBER(thread_chunk), { 208, 232, 256 }, THREAD, 8, HOSTSTACK_STATE_MAX, false },
	{ MEMBER(frame_size), FRAME, { 0 }, 0, HOSTSTACK_FRAME_MAX, false },
	{ MEMBER(frame_previous), { 232, 256, 320 }, FRAME, 8, HOSTSTACK_FRAME_MAX, false },
	{ MEMBER(frame_code), { 240, 264, 328 }, FRAME, 8, HOSTSTACK_FRAME_MAX, true },
	{ MEMBER(frame_at), { 248, 272, 336 }, FRAME, 8, HOSTSTACK_FRAME_MAX, false },
	{ MEMBER(frame_owner), { 264, 288, 352 }, FRAME, 1, HOSTSTACK_FRAME_MAX, false },
	{ MEMBER(frame_tlbc), { 0, 304, 368 }, FRAME, 4, HOSTSTACK_FRAME_MAX, true },
	{ MEMBER(code_size), CODE, { 0 }, 0, HOSTSTACK_CODE_MAX, false },
	{ MEMBER(code_file), { 280, 320, 384 }, CODE, 8, HOSTSTACK_CODE_MAX, false },
	{ MEMBER(code_name), { 288, 328, 392 }, CODE, 8, HOSTSTACK_CODE_MAX, false },
	{ MEMBER(code_qualname), { 296, 336, 400 }, CODE, 8, HOSTSTACK_CODE_MAX, false },
	{ MEMBER(code_lines), { 304, 344, 408 }, CODE, 8, HOSTSTACK_CODE_MAX, false },
	{ MEMBER(code_first_line), { 312, 352, 416 }, CODE, 4, HOSTSTACK_CODE_MAX, false },
	/* The instructions follow the structure, whose size may end in front of them or behind the first. */
	{ MEMBER(code_instructions), { 344, 384, 448 }, { 0 }, 0, HOSTSTACK_CODE_MAX, false },
	{ MEMBER(code_tlbc), { 0, 392, 456 }, CODE, 8, HOSTSTACK_CODE_MAX, true },
	{ MEMBER(object_size), OBJECT, { 0 }, 0, 64, false },
	{ MEMBER(object_type), { 360, 408, 472 }, OBJECT, 8, 64, false },
	{ MEMBER(str_state), { 544, 624, 720 }, STR, 4, 256, false },
	{ MEMBER(str_length), { 552, 632, 728 }, STR, 8, 256, false },
	{ MEMBER(str_ascii), { 560, 640, 736 }, { 0 }, 0, 256, false },
	{ MEMBER(bytes_length), { 520, 600, 696 }, BYTES, 8, 256, false },
	{ MEMBER(bytes_data), { 528, 608, 704 }, BYTES, 1, 256, false },
};

/* Without these there are no tasks, and frames all the same. */
static const struct entry coroutine_entries[] = {
	{ MEMBER(frame_stack), { 0, 296, 360 }, FRAME, 8, HOSTSTACK_FRAME_MAX, false },
	{ MEMBER(generator_frame), { 0, 680, 808 }, GENERATOR, 8, 1024, false },
	{ MEMBER(generator_state), { 0, 688, 816 }, GENERATOR, 1, 1024, false },
	{ MEMBER(type_flags), { 0, 440, 504 }, TYPE, 8, 2048, false },
	{ MEMBER(long_tag), { 0, 576, 672 }, LONG, 8, 256, false },
	{ MEMBER(long_digits), { 0, 584, 680 }, LONG, 4, 256, false },
	{ MEMBER(set_table), { 0, 512, 608 }, SET, 8, 1024, false },
	{ MEMBER(set_mask), { 0, 520, 616 }, SET, 8, 1024, false },
};

bool hoststack_layout_is_table(const uint8_t *bytes, size_t size)
{
	return size >= TABLE_HEAD && !memcmp(bytes, "xdebugpy", 8);
}

size_t hoststack_layout_table_size(uint64_t version)
{
	static const size_t sizes[] = { 584, 760, HOSTSTACK_TABLE_MAX };
	uint64_t minor = version >> 16 & 0xff;

	/* Only releases: in a pre-release the table may still be another one. */
	return version >> 24 == 3 && minor >= 13 && minor <= 15 && (version & 0xf0) == 0xf0 ? sizes[minor - 13] : 0;
}

static int read_entry(const uint8_t *table, size_t release, const struct entry *e, struct hoststack_layout *ret)
{
	uint64_t value, size = e->max;
	uint32_t stored;

	if (!e->at[release])
		return 0;
	value = hoststack_number(table, e->at[release], 8);
	if (e->size_at[release])
		size = hoststack_number(table, e->size_at[release], 8);
	if (size > e->max || size < e->width || value > size - e->width || (!value && !e->may_be_0) ||
	    (e->width > 1 && value % e->width))
		return -EBADMSG;
	stored = (uint32_t)value;
	memcpy((char *)ret + e->member, &stored, sizeof(stored));
	return 0;
}

static void read_coroutine(const uint8_t *table, size_t release, struct hoststack_layout *ret)
{
	const struct hoststack_layout without = *ret;
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(coroutine_entries) && r == 0; i++)
		r = read_entry(table, release, &coroutine_entries[i], ret);
	if (r < 0)
		*ret = without;
}

/*
 * The lock's members are told as members of the interpreter that has its own lock; but `enabled`, which free-threaded
 * builds have, as one of the lock itself (Include/internal/pycore_debug_offsets.h, _Py_Debug_gilruntimestate_enabled).
 */
static int read_lock(const uint8_t *table, size_t release, struct hoststack_layout *ret)
{
	static const uint16_t at[] = { 120, 128, 128 };
	uint64_t lock = hoststack_number(table, at[release], 8);
	uint64_t enabled = hoststack_number(table, at[release] + 8, 8);
	uint64_t locked = hoststack_number(table, at[release] + 16, 8) - lock;
	uint64_t holder = hoststack_number(table, at[release] + 24, 8) - lock;

	/* Without that it is not known who holds it, and nothing else. */
	if (!locked || locked > 4096 || holder > 4096 || (ret->free_threaded && enabled > 4096))
		return ret->free_threaded ? 0 : -EBADMSG;
	ret->lock_locked = (uint32_t)locked;
	ret->lock_holder = (uint32_t)holder;
	ret->lock_enabled = ret->free_threaded ? (uint32_t)enabled : 0;
	return 0;
}

int hoststack_layout_read(const uint8_t *table, size_t size, struct hoststack_layout *ret)
{
	struct hoststack_layout l = { .has_table = true };
	uint64_t version = hoststack_number(table, 8, 8), free_threaded;
	size_t need = hoststack_layout_table_size(version), release;
	int r = 0;

	if (!need)
		return -ENOTSUP;
	if (size < need)
		return -EBADMSG;
	release = (version >> 16 & 0xff) - 13;
	free_threaded = hoststack_number(table, 16, 8);
	if (free_threaded > 1)
		return -EBADMSG;
	l.version = (uint32_t)version;
	l.minor = (uint8_t)(13 + release);
	l.free_threaded = free_threaded;
	for (size_t i = 0; i < ARRAY_SIZE(entries) && r == 0; i++)
		r = read_entry(table, release, &entries[i], &l);
	if (r == 0)
		r = read_lock(table, release, &l);
	read_coroutine(table, release, &l);
	if (r < 0)
		return r;
	/* PyCompactUnicodeObject adds two members to PyASCIIObject; 3.15 tells it, too. */
	l.str_compact = l.str_ascii + 16;
	/* The number of instructions is the member behind the object's head. */
	if (l.object_size + 8 > l.code_size || l.str_state + 4 > 256 || l.code_instructions > HOSTSTACK_CODE_MAX)
		return -EBADMSG;
	*ret = l;
	return 0;
}
