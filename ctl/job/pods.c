/* SPDX-License-Identifier: MIT */
#include "ctl/job/pods.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"

#define UID_BYTES_MAX  63
#define NAME_BYTES_MAX 253
#define WORDS          4
#define CGROUP_MAX     ((size_t)64 << 10)

bool pods_is_uid(const char *uid)
{
	size_t n = strspn(uid, "0123456789abcdef-");

	return n && n <= UID_BYTES_MAX && !uid[n] && uid[0] != '-';
}

/* As Kubernetes has it for names of pods and nodes: none can be taken for an option. */
static bool is_name(const char *name)
{
	size_t n = strspn(name, "0123456789abcdefghijklmnopqrstuvwxyz.-");

	return n <= NAME_BYTES_MAX && !name[n] && name[0] != '-';
}

static bool is_pod(const struct pod *p)
{
	for (const char *c = p->phase; *c; c++)
		if (!isalpha((unsigned char)*c))
			return false;
	return pods_is_uid(p->uid) && p->name[0] && is_name(p->name) && is_name(p->node);
}

/* Cut a line into its words.  @return whether it is a pod. */
static bool read_line(char *line, struct pod *ret)
{
	const char *words[WORDS];

	for (size_t i = 0; i < WORDS; i++) {
		char *tab = strchr(line, '\t');

		if ((tab != NULL) != (i < WORDS - 1))
			return false;
		words[i] = line;
		if (tab) {
			*tab = 0;
			line = tab + 1;
		}
	}
	*ret = (struct pod){ .uid = words[0], .name = words[1], .node = words[2], .phase = words[3] };
	return is_pod(ret);
}

int pods_parse(char *text, size_t size, struct pod *ret, size_t room, size_t *ret_n)
{
	size_t n = 0;

	if (memchr(text, 0, size))
		return -EINVAL;
	for (char *line = text; *line;) {
		char *end = strchr(line, '\n');

		if (end)
			*end = 0;
		if (n == room)
			return -EFBIG;
		if (!read_line(line, &ret[n]))
			return -EINVAL;
		n++;
		line = end ? end + 1 : text + size;
	}
	*ret_n = n;
	return 0;
}

/* Whether the UID stands there, and ends there. */
static bool is_here(const char *uid, const char *text, size_t size)
{
	size_t n = strlen(uid);

	if (size < n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (text[i] != uid[i] && !(uid[i] == '-' && text[i] == '_'))
			return false;
	return size == n || (!isalnum((unsigned char)text[n]) && text[n] != '-' && text[n] != '_');
}

bool pods_has_process(const char *uid, const char *cgroup, size_t size)
{
	static const char pod[] = "pod";
	const size_t length = sizeof(pod) - 1;

	for (size_t i = 1; i + length < size; i++)
		if ((cgroup[i - 1] == '/' || cgroup[i - 1] == '-') && !memcmp(cgroup + i, pod, length) &&
		    is_here(uid, cgroup + i + length, size - i - length))
			return true;
	return false;
}

int pods_read_cgroup(uint32_t pid, char **ret, size_t *ret_size)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u/cgroup", pid);
	return fd_read_file(path, CGROUP_MAX, ret, ret_size);
}
