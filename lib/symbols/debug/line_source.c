/* SPDX-License-Identifier: MIT */
#include "symbols/debug/line_source.h"

#include <dwarf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/reader.h"

#define LNCT_LLVM_SOURCE 0x2001u

/* Most directories and files of a table that are looked at. */
#define ENTRIES_MAX 65536u

/* One column of the two lists: what it tells, and how. */
struct column {
	uint64_t content, form;
};

struct header {
	struct line_sections sections; /* Up to the end of the last string. */
	struct reader r;
	bool is_64; /* Offsets have 64 bits. */
	struct column columns[UINT8_MAX];
	size_t n_columns;
};

/* One directory or file. */
struct entry {
	const char *path, *source;
	uint64_t directory;
};

/* The value of a column: text, or a number. */
struct value {
	const char *text;
	uint64_t number;
};

static uint64_t read_offset(struct header *h)
{
	return h->is_64 ? reader_u64(&h->r) : reader_u32(&h->r);
}

/* A section up to the end of its last string.  Many entries may share one that is long, and none looks for its end. */
static struct line_section strings_of(const struct line_section *s)
{
	const uint8_t *last = s->size ? memrchr(s->data, '\0', s->size) : NULL;

	return (struct line_section){ s->data, last ? (size_t)(last - s->data) + 1 : 0 };
}

static const char *string_at(const struct line_section *strings, uint64_t at)
{
	return at < strings->size ? (const char *)strings->data + at : NULL;
}

/* DWARF 5, 7.5.5 and table 7.27.  What cannot be passed over makes the table a broken one. */
static struct value read_value(struct header *h, uint64_t form)
{
	struct value v = { 0 };

	switch (form) {
	case DW_FORM_string:
		v.text = reader_string(&h->r);
		break;
	case DW_FORM_line_strp:
		v.text = string_at(&h->sections.line_str, read_offset(h));
		break;
	case DW_FORM_strp:
		v.text = string_at(&h->sections.str, read_offset(h));
		break;
	case DW_FORM_strp_sup:
	case DW_FORM_sec_offset:
		(void)read_offset(h);
		break;
	case DW_FORM_udata:
	case DW_FORM_strx:
		v.number = reader_uleb(&h->r);
		break;
	case DW_FORM_data1:
	case DW_FORM_strx1:
		v.number = reader_u8(&h->r);
		break;
	case DW_FORM_data2:
	case DW_FORM_strx2:
		v.number = reader_u16(&h->r);
		break;
	case DW_FORM_strx3:
		reader_skip(&h->r, 3);
		break;
	case DW_FORM_data4:
	case DW_FORM_strx4:
		v.number = reader_u32(&h->r);
		break;
	case DW_FORM_data8:
		v.number = reader_u64(&h->r);
		break;
	case DW_FORM_data16:
		reader_skip(&h->r, 16);
		break;
	case DW_FORM_block:
		reader_skip(&h->r, (size_t)reader_uleb(&h->r));
		break;
	default:
		reader_fail(&h->r);
	}
	return v;
}

static struct entry read_entry(struct header *h)
{
	struct entry e = { 0 };

	for (size_t i = 0; i < h->n_columns && !reader_is_bad(&h->r); i++) {
		struct value v = read_value(h, h->columns[i].form);

		if (h->columns[i].content == DW_LNCT_path)
			e.path = v.text;
		else if (h->columns[i].content == DW_LNCT_directory_index)
			e.directory = v.number;
		else if (h->columns[i].content == LNCT_LLVM_SOURCE)
			e.source = v.text;
	}
	return e;
}

static void read_column(struct header *h, struct column *ret)
{
	ret->content = reader_uleb(&h->r);
	ret->form = reader_uleb(&h->r);
}

/* Begin a list.  @return how many entries follow, none of them without a byte. */
static size_t begin_list(struct header *h)
{
	uint64_t n;

	h->n_columns = reader_u8(&h->r);
	for (size_t i = 0; i < h->n_columns; i++)
		read_column(h, &h->columns[i]);
	n = reader_uleb(&h->r);
	if (n && !h->n_columns)
		reader_fail(&h->r);
	if (reader_is_bad(&h->r))
		return 0;
	return n < ENTRIES_MAX ? (size_t)n : ENTRIES_MAX + 1;
}

/* DWARF 5, 6.2.4.  @return 0, -ENOENT (a table of another version), -EBADMSG. */
static int read_header(struct header *h, const struct line_sections *s, uint64_t at)
{
	uint64_t length, version;

	*h = (struct header){ .sections = { s->line, strings_of(&s->line_str), strings_of(&s->str) } };
	if (at >= s->line.size)
		return -EBADMSG;
	reader_init(&h->r, s->line.data + at, s->line.size - (size_t)at);
	length = reader_u32(&h->r);
	h->is_64 = length == UINT32_MAX;
	if (h->is_64)
		length = reader_u64(&h->r);
	if (length > reader_left(&h->r))
		return -EBADMSG;
	h->r = reader_slice(&h->r, h->r.pos, (size_t)length);
	version = reader_u16(&h->r);
	if (version != 5)
		return reader_is_bad(&h->r) ? -EBADMSG : -ENOENT;
	reader_skip(&h->r, 2); /* Sizes of addresses and of segments. */
	length = read_offset(h);
	if (length > reader_left(&h->r))
		return -EBADMSG;
	h->r = reader_slice(&h->r, h->r.pos, (size_t)length);
	reader_skip(&h->r, 5); /* How to read the program, which is not read. */
	length = reader_u8(&h->r);
	reader_skip(&h->r, length ? (size_t)length - 1 : 0);
	return reader_is_bad(&h->r) ? -EBADMSG : 0;
}

/* Take a beginning off a path.  @return the rest; NULL if it begins otherwise. */
static const char *behind(const char *path, const char *beginning)
{
	/* Of many entries, each may be long: no loop over bytes. */
	size_t n = strnlen(beginning, strlen(path) + 1);

	return strncmp(path, beginning, n) ? NULL : path + n;
}

/* The same, of a directory with its slash. */
static const char *below(const char *path, const char *directory)
{
	const char *rest = path && directory ? behind(path, directory) : NULL;

	return rest && *rest == '/' ? rest + 1 : NULL;
}

/* Is that the path of an entry?  Directories are below the first one, that of the compilation, unless absolute. */
static bool is_file(const struct entry *e, const char *const *directories, size_t n, const char *file)
{
	const char *directory = e->directory < n ? directories[e->directory] : NULL;

	if (!e->path)
		return false;
	if (e->path[0] != '/' && directory && directory[0] != '/' && e->directory)
		file = below(file, directories[0]);
	if (e->path[0] != '/')
		file = file ? below(file, directory) : NULL;
	return file && !strcmp(file, e->path);
}

static int find_file(struct header *h, const char *const *directories, size_t n_directories, const char *file,
		     struct entry *ret)
{
	size_t n = begin_list(h);

	for (size_t i = 0; i < n && i < ENTRIES_MAX && !reader_is_bad(&h->r); i++) {
		*ret = read_entry(h);
		/* An empty text stands for none. */
		if (!reader_is_bad(&h->r) && ret->source && *ret->source &&
		    is_file(ret, directories, n_directories, file))
			return 0;
	}
	return reader_is_bad(&h->r) ? -EBADMSG : -ENOENT;
}

int line_source_find(const struct line_sections *s, uint64_t at, const char *file, const char **ret,
		     size_t *ret_size)
{
	auto_free const char **directories = NULL;
	struct header h;
	struct entry e = { 0 };
	int r = read_header(&h, s, at);
	size_t n;

	if (r < 0)
		return r;
	n = begin_list(&h);
	/* The list of files is behind all directories. */
	if (n > ENTRIES_MAX)
		return -ENOENT;
	directories = calloc(n + 1, sizeof(*directories));
	if (!directories)
		return -ENOMEM;
	for (size_t i = 0; i < n && !reader_is_bad(&h.r); i++)
		directories[i] = read_entry(&h).path;
	r = find_file(&h, directories, n, file, &e);
	if (r < 0)
		return r;
	*ret = e.source;
	*ret_size = strlen(e.source);
	return 0;
}
