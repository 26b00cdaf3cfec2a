/* SPDX-License-Identifier: MIT */
#include "hoststack/python.h"

#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "hoststack/elf.h"

#define MINOR_MIN 8
#define MINOR_MAX 12

/* Releases that neither have a table nor say what they are: the size of their _PyRuntime does (x86-64). */
static const struct {
	uint64_t size;
	unsigned minor;
} sizes[] = { { 1464, 8 }, { 656, 9 }, { 672, 10 } };

/* The minor release of an interpreter without a table.  @param ret_version  Py_Version, if it has that. */
static int find_minor(struct hoststack_memory *m, const struct hoststack_elf *e, uint64_t runtime_size,
		      uint32_t *ret_version, unsigned *ret)
{
	uint64_t address;
	char name[24];
	int r = hoststack_elf_find(m, e, "Py_Version", &address, NULL);

	if (r == 0) {
		r = hoststack_read(m, address, ret_version, sizeof(*ret_version));
		*ret = *ret_version >> 24 == 3 ? *ret_version >> 16 & 0xff : 0;
		return r;
	}
	if (r != -ENOENT)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (sizes[i].size == runtime_size) {
			*ret = sizes[i].minor;
			return 0;
		}
	for (unsigned minor = MINOR_MIN; minor <= MINOR_MAX; minor++) {
		snprintf(name, sizeof(name), "libpython3.%u", minor);
		r = hoststack_elf_is_named(m, e, name);
		if (r > 0)
			*ret = minor;
		if (r != 0)
			return r < 0 ? r : 0;
	}
	return 0;
}

static int use_table(struct hoststack_memory *m, struct hoststack_python *p)
{
	uint8_t table[HOSTSTACK_TABLE_MAX];
	uint64_t version;
	size_t size;
	int r = hoststack_read_u64(m, p->runtime + 8, &version);

	if (r < 0)
		return r;
	p->version = (uint32_t)version;
	size = hoststack_layout_table_size(version);
	if (!size)
		return -ENOTSUP;
	r = hoststack_read(m, p->runtime, table, size);
	return r < 0 ? r : hoststack_layout_read(table, size, &p->layout);
}

static int use_row(struct hoststack_memory *m, const struct hoststack_elf *e, uint64_t runtime_size,
		   struct hoststack_python *p)
{
	const struct hoststack_layout *row;
	unsigned minor = 0;
	int r = find_minor(m, e, runtime_size, &p->version, &minor);

	if (r < 0)
		return r;
	row = hoststack_layout_row(minor);
	if (!row)
		return -ENOTSUP;
	p->layout = *row;
	if (!p->version)
		p->version = 3u << 24 | minor << 16;
	return 0;
}

static int find_types(struct hoststack_memory *m, const struct hoststack_elf *e, struct hoststack_python *p)
{
	static const char *const names[] = { "PyCode_Type", "PyUnicode_Type", "PyBytes_Type" };
	uint64_t *const to[] = { &p->code_type, &p->str_type, &p->bytes_type };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(names) && (r == 0 || r == -ENOENT); i++)
		r = hoststack_elf_find(m, e, names[i], to[i], NULL);
	return r == -ENOENT ? 0 : r;
}

int hoststack_python_find(struct hoststack_memory *m, uint64_t base, struct hoststack_python *ret)
{
	struct hoststack_elf e;
	uint8_t head[24];
	uint64_t size;
	int r = hoststack_elf_open(m, base, &e);

	*ret = (struct hoststack_python){ 0 };
	if (r == 0)
		r = hoststack_elf_find(m, &e, "_PyRuntime", &ret->runtime, &size);
	if (r == 0)
		r = hoststack_read(m, ret->runtime, head, sizeof(head));
	if (r < 0)
		return r == -EFAULT ? -EBADMSG : r;
	r = hoststack_layout_is_table(head, sizeof(head)) ? use_table(m, ret) : use_row(m, &e, size, ret);
	if (r == 0)
		r = find_types(m, &e, ret);
	return r == -EFAULT ? -EBADMSG : r;
}
