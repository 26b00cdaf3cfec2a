/* SPDX-License-Identifier: MIT */
#include "agentd/cgroup.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define CONTAINER_ID_DIGITS 64
#define COMPONENT_MAX 160 /* A longer component is no container's. */

struct line {
	struct cgroup_part id, controllers, path;
};

static bool is_text(struct cgroup_part p, const char *text)
{
	size_t n = strlen(text);

	return p.size == n && memcmp(p.text, text, n) == 0;
}

static bool ends_with(struct cgroup_part p, const char *end)
{
	size_t n = strlen(end);

	return p.size > n && memcmp(p.text + p.size - n, end, n) == 0;
}

/* @return the text in front of the next @p c; *rest then begins behind that one, or is empty. */
static struct cgroup_part cut(struct cgroup_part *rest, char c, bool *ret_found)
{
	const char *at = rest->size ? memchr(rest->text, c, rest->size) : NULL;
	struct cgroup_part before = *rest;

	*ret_found = at != NULL;
	if (!at) {
		*rest = (struct cgroup_part){ 0 };
		return before;
	}
	before.size = (size_t)(at - before.text);
	rest->size -= before.size + 1;
	rest->text = at + 1;
	return before;
}

/* Cut the next line off.  A line without two colons has no path.  @return false at the end. */
static bool next_line(struct cgroup_part *rest, struct line *ret)
{
	struct cgroup_part line;
	bool found;

	if (!rest->size)
		return false;
	line = cut(rest, '\n', &found);
	*ret = (struct line){ .id = cut(&line, ':', &found) };
	if (found)
		ret->controllers = cut(&line, ':', &found);
	if (found)
		ret->path = line;
	return true;
}

struct cgroup_part cgroup_path(const char *text, size_t size)
{
	struct cgroup_part rest = { text, size }, systemd = { 0 };
	struct line line;

	while (next_line(&rest, &line)) {
		if (!line.path.size)
			continue;
		if (is_text(line.id, "0") && !line.controllers.size)
			return line.path;
		if (is_text(line.controllers, "name=systemd"))
			systemd = line.path;
	}
	return systemd;
}

/* Cut the last component off *path, with its slash.  @return that component. */
static struct cgroup_part pop_component(struct cgroup_part *path)
{
	const char *slash = memrchr(path->text, '/', path->size);
	struct cgroup_part last = *path;

	path->size = 0;
	if (!slash)
		return last;
	path->size = (size_t)(slash - path->text);
	last.size -= path->size + 1;
	last.text = slash + 1;
	return last;
}

struct cgroup_part cgroup_unit(const char *text, size_t size)
{
	struct cgroup_part path = cgroup_path(text, size);

	while (path.size) {
		struct cgroup_part name = pop_component(&path);

		if (ends_with(name, ".service") || ends_with(name, ".scope"))
			return name;
	}
	return (struct cgroup_part){ 0 };
}

static bool is_container(struct cgroup_part p)
{
	static const char lxc[] = "lxc.payload.";
	size_t run = 0;

	if (p.size > COMPONENT_MAX)
		return false;
	for (size_t i = 0; i < p.size; i++) {
		run = isxdigit((unsigned char)p.text[i]) ? run + 1 : 0;
		if (run == CONTAINER_ID_DIGITS)
			return true;
	}
	return p.size > sizeof(lxc) - 1 && memcmp(p.text, lxc, sizeof(lxc) - 1) == 0;
}

struct cgroup_part cgroup_container(const char *text, size_t size)
{
	struct cgroup_part rest = { text, size };
	struct line line;

	while (next_line(&rest, &line))
		while (line.path.size) {
			struct cgroup_part name = pop_component(&line.path);

			if (is_container(name))
				return name;
		}
	return (struct cgroup_part){ 0 };
}
