/* SPDX-License-Identifier: MIT */
/* One table of words, for both directions. */
#include "ctl/document/vendor_words.h"

#include <string.h>

#include "base/cleanup.h"

/* A word of the protocol and NVIDIA's for the same; docs/GLOSSARY.md has them all. */
static const struct {
	const char *word, *nvidia;
} words[] = {
	{ "wave", "warp" },
	{ "waves", "warps" },
	{ "workgroup", "block" },
	{ "workgroups", "blocks" },
	{ "lane", "thread" },
	{ "lanes", "threads" },
	{ "queue", "context" },
	{ "queues", "contexts" },
	{ "dispatch", "grid" },
	{ "dispatches", "grids" },
	{ "unit", "SM" },
	{ "units", "SMs" },
	{ "lds", "shared" },
	{ "scratch", "local" },
	{ "scratch", "private" }, /* OpenCL's word; on input alone, for the first one is printed */
	{ "WAVE", "WARP" },
	{ "WAVES", "WARPS" },
	{ "WORKGROUP", "BLOCK" },
	{ "WORKGROUPS", "BLOCKS" },
	{ "LANES", "THREADS" },
	{ "QUEUE", "CONTEXT" },
	{ "QUEUES", "CONTEXTS" },
	{ "DISPATCH", "GRID" },
	{ "UNIT", "SM" },
	{ "UNITS", "SMs" },
};

const char *vendor_word(enum rpc_vendor vendor, const char *word)
{
	for (size_t i = 0; vendor == RPC_VENDOR_NVIDIA && i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i].word, word))
			return words[i].nvidia;
	return word;
}

const char *vendor_word_neutral(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i].nvidia, word))
			return words[i].word;
	return word;
}
