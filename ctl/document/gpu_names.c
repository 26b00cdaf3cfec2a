/* SPDX-License-Identifier: MIT */
/* GPUs by index, by the kernel's id and by PCI address. */
#include "ctl/document/gpu_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/str.h"

void gpu_names_set(struct gpu_names *g, const struct rpc_device *devices, size_t n)
{
	g->n = n < GPU_NAMES_MAX ? n : GPU_NAMES_MAX;
	for (size_t i = 0; i < g->n; i++) {
		const struct rpc_device *d = &devices[i];

		g->gpus[i].id = d->gpu_id;
		str_copy(g->gpus[i].name, sizeof(g->gpus[i].name), d->name ? d->name : "");
		str_copy(g->gpus[i].pci, sizeof(g->gpus[i].pci), d->pci ? d->pci : "");
	}
}

int gpu_names_index(const struct gpu_names *g, uint32_t gpu_id)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->gpus[i].id == gpu_id)
			return (int)i;
	return -1;
}

const char *gpu_names_text(const struct gpu_names *g, struct rpc_arena *a, uint32_t gpu_id)
{
	int i = gpu_names_index(g, gpu_id);

	return i < 0 ? rpc_arena_printf(a, "id %u", gpu_id) : rpc_arena_printf(a, "%d", i);
}

size_t gpu_names_put(const struct gpu_names *g, struct out *o, const char *text)
{
	static const char word[] = "device ";
	size_t digits, size;
	uint64_t id;
	int index;

	if (!str_starts_with(text, word))
		return 0;
	digits = strspn(text + strlen(word), "0123456789");
	size = strlen(word) + digits;
	/* Not `device 7x`, but `device 7.` at the end of a sentence. */
	if (!digits || digits > 10 || isalnum((unsigned char)text[size]) || (text[size] && strchr("_/-", text[size])) ||
	    (text[size] == '.' && isalnum((unsigned char)text[size + 1])))
		return 0;
	id = strtoull(text + strlen(word), NULL, 10);
	index = id > UINT32_MAX ? -1 : gpu_names_index(g, (uint32_t)id);
	if (index < 0)
		return 0;
	out_fmt(o, "GPU %d", index);
	return size;
}

const char *gpu_names_label(const struct gpu_names *g, struct rpc_arena *a, uint32_t gpu_id)
{
	int i = gpu_names_index(g, gpu_id);

	if (i >= 0 && g->gpus[i].name[0])
		return rpc_arena_printf(a, "GPU %d (%s)", i, g->gpus[i].name);
	return i < 0 ? rpc_arena_printf(a, "GPU id %u", gpu_id) : rpc_arena_printf(a, "GPU %d", i);
}

/* Whether a text has the form of a PCI address: it may be known or not. */
static bool is_pci(const char *text)
{
	return strchr(text, ':') && text[strspn(text, "0123456789abcdefABCDEF:.")] == '\0';
}

int gpu_names_find(const struct gpu_names *g, const char *text, uint32_t *ret_gpu_id)
{
	bool pci = is_pci(text);
	uint64_t number = 0;

	if (!pci && str_to_u64(text, 0, UINT32_MAX, &number) < 0)
		return -EINVAL;
	if (!pci && number < g->n) {
		*ret_gpu_id = g->gpus[number].id;
		return 0;
	}
	for (size_t i = 0; i < g->n; i++) {
		if (pci ? strcasecmp(g->gpus[i].pci, text) != 0 : g->gpus[i].id != number)
			continue;
		*ret_gpu_id = g->gpus[i].id;
		return 0;
	}
	return -ENODEV;
}
