/* SPDX-License-Identifier: MIT */
/*
 * Names as NCCL 2.4 to 2.29 and RCCL up to 6.2 form them: until 2.18 OPERATION_ALGORITHM_PROTOCOL_REDUCTION_TYPE,
 * since then OPERATION, reduction and type where there is one, and algorithm and protocol.  Kernels of symmetric
 * memory, since NCCL 2.27, have an OPERATION and the name of an algorithm, which is not told.
 */
#include "waits/collective/collective.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const operations[] = { "AllGatherV", "AllGather",	 "AllReduce", "Broadcast",
					  "Reduce",	"ReduceScatter", "SendRecv",  "AllToAllPivot", NULL };
static const char *const algorithms[] = { "RING", "TREE", "COLLNET_DIRECT", "COLLNET_CHAIN",
					  "NVLS_TREE", "NVLS", "PAT", NULL };
static const char *const protocols[] = { "LL128", "LL", "SIMPLE", NULL };
static const char *const reductions[] = { "Sum", "Prod", "Max", "Min", "MinMax", "PreMulSum", "SumPostDiv", NULL };

/* What a name begins with, and whether it is that of a device function; the longer ones first. */
static const struct head {
	const char *text;
	bool is_function, is_old, is_symmetric;
} heads[] = {
	{ "ncclDevKernelDebug_", false, false, false },	{ "ncclDevKernel_", false, false, false },
	{ "ncclDevFunc_", true, false, false },		{ "ncclKernelLL128Debug_", false, true, false },
	{ "ncclKernelLL128_", false, true, false },	{ "ncclKernelDebug_", false, true, false },
	{ "ncclKernel_", false, true, false },		{ "ncclFunction_", true, true, false },
	{ "ncclSymDevKernel_", false, false, true },	{ "ncclSymkDevKernel_", false, false, true },
};

/* The rest of a name, without what follows it. */
struct rest {
	const char *at, *end;
};

/* Take a word of a list, if it is next and whole. */
static bool take(struct rest *r, const char *const *list, struct waits_word_of_name *ret)
{
	for (; *list; list++) {
		size_t n = strlen(*list), left = (size_t)(r->end - r->at);

		if (n > left || memcmp(r->at, *list, n) != 0 || (n < left && r->at[n] != '_'))
			continue;
		*ret = (struct waits_word_of_name){ r->at, n };
		r->at += n < left ? n + 1 : n;
		return true;
	}
	return false;
}

static bool take_type(struct rest *r, struct waits_word_of_name *ret)
{
	const char *at = r->at;

	while (at < r->end && (isdigit((unsigned char)*at) || islower((unsigned char)*at)))
		at++;
	/* Of int8_t and such the last letter belongs to it. */
	if (r->end - at >= 2 && at > r->at && isdigit((unsigned char)at[-1]) && at[0] == '_' && at[1] == 't' &&
	    (r->end - at == 2 || at[2] == '_'))
		at += 2;
	if (at == r->at || (at < r->end && *at != '_'))
		return false;
	*ret = (struct waits_word_of_name){ r->at, (size_t)(at - r->at) };
	r->at = at < r->end ? at + 1 : at;
	return true;
}

static bool take_path(struct rest *r, struct waits_collective *c)
{
	return take(r, algorithms, &c->algorithm) && take(r, protocols, &c->protocol);
}

static bool take_reduction(struct rest *r, struct waits_collective *c)
{
	return take(r, reductions, &c->reduction) && take_type(r, &c->type);
}

static bool take_all(struct rest *r, const struct head *head, struct waits_collective *c)
{
	static const char *const generic[] = { "Generic", NULL };
	struct waits_word_of_name none;

	if (head->is_symmetric)
		return take(r, operations, &c->operation) && r->at < r->end;
	if (!head->is_old && take(r, generic, &none))
		return r->at == r->end;
	if (!take(r, operations, &c->operation))
		return false;
	if (head->is_old)
		return take_path(r, c) && take_reduction(r, c) && r->at == r->end;
	(void)take_reduction(r, c);
	return r->at == r->end || (take_path(r, c) && r->at == r->end);
}

/* Without the parameters of a name for people, and without the mangled name's length and parameters. */
static struct rest inside(const char *name)
{
	struct rest r = { name, name + strcspn(name, "(<") };

	if (name[0] == '_' && name[1] == 'Z' && isdigit((unsigned char)name[2])) {
		char *at;
		unsigned long n = strtoul(name + 2, &at, 10);

		r.at = at;
		r.end = at + (n < strlen(at) ? n : strlen(at));
	}
	return r;
}

int waits_collective_read(const char *name, struct waits_collective *ret)
{
	struct rest r = inside(name);

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		size_t n = strlen(heads[i].text);

		if ((size_t)(r.end - r.at) < n || memcmp(r.at, heads[i].text, n) != 0)
			continue;
		r.at += n;
		*ret = (struct waits_collective){ .is_function = heads[i].is_function };
		return take_all(&r, &heads[i], ret) ? 0 : -ENOENT;
	}
	return -ENOENT;
}
