/* SPDX-License-Identifier: MIT */
#include "symbols/location.h"

#include <string.h>

#include "base/str.h"
#include "symbols/demangle.h"

#define FILE_MAX 4096

void location_init(struct symbols_location *l)
{
	l->n_frames = 0;
	l->has_offset = false;
	l->offset = 0;
	l->cut = false;
	l->text_used = 0;
}

struct symbols_frame *location_add(struct symbols_location *l)
{
	struct symbols_frame *f;

	if (l->n_frames == SYMBOLS_FRAMES_MAX) {
		l->cut = true;
		return NULL;
	}
	f = &l->frames[l->n_frames++];
	*f = (struct symbols_frame){ 0 };
	return f;
}

/*
 * Find room for a string of that size with its NUL: for all of it, for as much as is left, or none.
 */
static char *reserve(struct symbols_location *l, size_t wanted, size_t *ret_size)
{
	size_t room = sizeof(l->text) - l->text_used;

	if (wanted > room) {
		l->cut = true;
		wanted = room;
	}
	*ret_size = wanted;
	return wanted > 1 ? l->text + l->text_used : NULL;
}

static const char *keep(struct symbols_location *l, const char *s, size_t max)
{
	size_t length = strnlen(s, max), size;
	char *at = reserve(l, length + 1, &size);

	if (!at)
		return NULL;
	if (s[length])
		l->cut = true;
	str_copy(at, size, s);
	l->text_used += strlen(at) + 1;
	return at;
}

void location_set_function(struct symbols_location *l, struct symbols_frame *f, const char *raw)
{
	size_t size;
	char *at;

	if (!raw || !*raw)
		return;
	f->raw = keep(l, raw, SYMBOLS_NAME_MAX - 1);
	f->function = f->raw;
	if (strncmp(raw, "_Z", 2) && raw[0] != '$')
		return;
	at = reserve(l, SYMBOLS_NAME_MAX, &size);
	if (!at || !symbols_demangle(raw, at, size))
		return;
	f->function = at;
	l->text_used += strlen(at) + 1;
}

/* Keep the name of a file.  Frames of one chain mostly share one, so it is looked for first. */
static const char *keep_file(struct symbols_location *l, const char *file)
{
	for (size_t i = 0; i < l->n_frames; i++)
		if (l->frames[i].file && !strcmp(l->frames[i].file, file))
			return l->frames[i].file;
	return keep(l, file, FILE_MAX - 1);
}

void location_set_position(struct symbols_location *l, struct symbols_frame *f, const char *file,
			   int line, int column)
{
	f->file = file && *file ? keep_file(l, file) : NULL;
	f->line = line > 0 ? (uint32_t)line : 0;
	f->column = column > 0 ? (uint32_t)column : 0;
}
