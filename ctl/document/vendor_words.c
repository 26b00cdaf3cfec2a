/* SPDX-License-Identifier: MIT */
/* One table of words, for both directions and for sentences. */
#include "ctl/document/vendor_words.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

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
	{ "scalar", "uniform" },
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

void vendor_sentence(struct out *o, enum rpc_vendor vendor, const char *text)
{
	for (size_t n; *text; text += n + strspn(text + n, " ")) {
		size_t letters = strspn(text, "abcdefghijklmnopqrstuvwxyz");
		char word[32];

		n = strcspn(text, " ");
		if (letters && letters < sizeof(word) && letters + strspn(text + letters, ".,;:") == n) {
			str_copy(word, letters + 1, text);
			out_str(o, vendor_word(vendor, word));
			out_bytes(o, text + letters, n - letters);
		} else {
			out_bytes(o, text, n);
		}
		out_bytes(o, text + n, strspn(text + n, " "));
	}
}

const char *vendor_word_neutral(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (!strcmp(words[i].nvidia, word))
			return words[i].word;
	return word;
}
