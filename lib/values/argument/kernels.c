/* SPDX-License-Identifier: MIT */
#include "values/argument/kernels.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"
#include "symbols/image.h"

/* Most kernels of an image: the largest libraries have some ten thousand. */
#define KERNELS_MAX ((size_t)1 << 17)

static int add(void *arg, uint64_t entry, const void *info, size_t size)
{
	struct values_kernels *k = arg;
	struct symbols_nv_info i;

	/* What is broken in front of the end may still say where they are. */
	(void)symbols_nv_info_read(info, size, &i);
	if (!i.has_bank || !i.size || k->n == KERNELS_MAX)
		return 0;
	if (vec_reserve(&k->list, k->n, 1, &k->capacity, sizeof(*k->list)) < 0)
		return -ENOMEM;
	k->list[k->n++] = (struct values_kernel){ entry, i.base, i.size };
	return 0;
}

static int compare(const void *x, const void *y)
{
	const struct values_kernel *a = x, *b = y;

	return a->entry < b->entry ? -1 : a->entry > b->entry;
}

int values_kernels_find(const struct symbols_image *i, struct values_kernels *ret)
{
	int r = symbols_image_each_nv_info(i, add, ret);

	if (ret->n)
		qsort(ret->list, ret->n, sizeof(*ret->list), compare);
	return r;
}

void values_kernels_deinit(struct values_kernels *k)
{
	free(k->list);
	*k = (struct values_kernels){ 0 };
}

const struct values_kernel *values_kernels_at(const struct values_kernels *k, uint64_t entry)
{
	const struct values_kernel wanted = { .entry = entry };

	return k->n ? bsearch(&wanted, k->list, k->n, sizeof(*k->list), compare) : NULL;
}
