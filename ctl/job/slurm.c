/* SPDX-License-Identifier: MIT */
#include "ctl/job/slurm.h"

#include <stdbool.h>
#include <string.h>

#include "base/str.h"

#define WORD_MAX 24

/* Take the next word of a line.  @return whether there is one that fits. */
static bool next_word(const char **at, const char *end, char ret[WORD_MAX])
{
	size_t n = 0;

	while (*at < end && (**at == ' ' || **at == '\t'))
		++*at;
	for (; *at < end && **at != ' ' && **at != '\t'; ++*at)
		if (n < WORD_MAX - 1)
			ret[n++] = **at;
		else
			return false;
	ret[n] = 0;
	return n > 0;
}

static bool has(const uint32_t *list, size_t n, uint32_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == pid)
			return true;
	return false;
}

size_t slurm_read_pids(const char *text, size_t size, const char *job, uint32_t *list, size_t room)
{
	size_t n = 0;

	for (size_t from = 0; from < size && n < room;) {
		const char *end = memchr(text + from, '\n', size - from), *at = text + from;
		char pid[WORD_MAX], of[WORD_MAX];
		uint64_t value;

		end = end ? end : text + size;
		if (next_word(&at, end, pid) && next_word(&at, end, of) && !strcmp(of, job) &&
		    str_to_u64(pid, 1, UINT32_MAX, &value) == 0 && !has(list, n, (uint32_t)value))
			list[n++] = (uint32_t)value;
		from = (size_t)(end - text) + 1;
	}
	return n;
}
